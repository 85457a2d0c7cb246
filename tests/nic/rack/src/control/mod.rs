// SPDX-License-Identifier: GPL-2.0
//! Control of the rack: one JSON object a line, one reply each.
//!
//! [`request`] is the form of lines and replies, [`channel`] the sockets they come over, [`port`] the
//! commands about a port of the fabric, [`card`] those about a card and its halves. Whatever
//! neither knows is offered to the LAN half and then to the RDMA half.

mod card;
pub mod channel;
mod port;
pub mod request;

use crate::card::Card;
use nic_fabric::Port;
use serde_json::Value;
use std::sync::Arc;

/// Who a command is for if it does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A card.
    Nic(usize),
    /// A port of a plain guest.
    Port(usize),
}

/// The answer to a command.
pub type Answer = Result<Value, String>;

/// What can be controlled.
pub struct Control {
    cards: Vec<Arc<Card>>,
    ports: Vec<Arc<Port>>,
}

impl Control {
    /// Controls these cards and ports of plain guests.
    pub fn new(cards: Vec<Arc<Card>>, ports: Vec<Arc<Port>>) -> Self {
        Self { cards, ports }
    }

    /// Answers one line.
    pub fn line(&self, line: &[u8], default: Target) -> Value {
        match request::parse(line) {
            Ok(request) => request::reply(request.id.clone(), self.execute(&request, default)),
            Err(error) => request::reply(Value::Null, Err(error)),
        }
    }

    fn execute(&self, request: &request::Request, default: Target) -> Answer {
        let target = match (request.index("nic")?, request.index("port")?) {
            (Some(_), Some(_)) => return Err("nic and port exclude one another".into()),
            (Some(nic), None) => Target::Nic(nic),
            (None, Some(port)) => Target::Port(port),
            (None, None) => default,
        };
        match target {
            Target::Nic(index) => {
                let card = self
                    .cards
                    .get(index)
                    .ok_or_else(|| format!("no nic {index}"))?;
                card::execute(card, request)
            }
            Target::Port(index) => {
                let port = self
                    .ports
                    .get(index)
                    .ok_or_else(|| format!("no port {index}"))?;
                port::execute(port, request)
                    .unwrap_or_else(|| Err(format!("{}: not a command of a port", request.command)))
            }
        }
    }
}
