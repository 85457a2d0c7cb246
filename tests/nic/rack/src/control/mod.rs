// SPDX-License-Identifier: GPL-2.0
//! Control of the rack: one JSON object a line, one reply each.
//!
//! [`request`] is the form of lines and replies, [`channel`] the sockets they come over, [`port`] the
//! commands about a port of the fabric, [`switch`] those about the switch behind it, [`card`] those
//! about a card and its halves. Whatever
//! neither knows is offered to the LAN half and then to the RDMA half.

mod card;
pub mod channel;
mod port;
pub mod request;
mod switch;

use crate::card::Card;
use nic_fabric::{Fabric, Port};
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
    /// Ports do not keep their switches alive.
    switches: Vec<Arc<Fabric>>,
    cards: Vec<Arc<Card>>,
    ports: Vec<Arc<Port>>,
}

impl Control {
    /// Controls these switches, cards and ports of plain guests.
    pub fn new(switches: Vec<Arc<Fabric>>, cards: Vec<Arc<Card>>, ports: Vec<Arc<Port>>) -> Self {
        Self {
            switches,
            cards,
            ports,
        }
    }

    /// The switch that a command is for: the one that it names, or that of the port.
    fn switch(&self, request: &request::Request, port: &Port) -> Result<&Fabric, String> {
        let found = match request.index("switch")? {
            Some(index) => self.switches.get(index).ok_or(format!("no switch {index}")),
            None => self
                .switches
                .iter()
                .find(|switch| switch.ports().iter().any(|p| p.name() == port.name()))
                .ok_or(format!("{}: at no switch", port.name())),
        };
        found.map(|switch| &**switch)
    }

    fn about_switch(&self, request: &request::Request, port: &Port) -> Option<Answer> {
        if !switch::knows(&request.command) {
            return None;
        }
        Some(
            self.switch(request, port)
                .and_then(|fabric| switch::execute(fabric, port, request)),
        )
    }

    /// Answers one line.
    pub fn line(&self, line: &[u8], default: Target) -> Value {
        match request::parse(line) {
            Ok(request) => request::reply(request.id.clone(), self.execute(&request, default)),
            Err(error) => request::reply(Value::Null, Err(error)),
        }
    }

    fn execute(&self, request: &request::Request, default: Target) -> Answer {
        if let Some(name) = request.text("at")? {
            return self.at(name, request);
        }
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
                self.about_switch(request, card.port())
                    .unwrap_or_else(|| card::execute(card, request))
            }
            Target::Port(index) => {
                let port = self
                    .ports
                    .get(index)
                    .ok_or_else(|| format!("no port {index}"))?;
                self.about_port(request, port)
            }
        }
    }

    /// A command for the port called `name`, such as one that links two switches.
    fn at(&self, name: &str, request: &request::Request) -> Answer {
        let found = self.switches.iter().find_map(|switch| switch.port(name));
        let port = found.ok_or_else(|| format!("no port {name}"))?;
        self.about_port(request, &port)
    }

    fn about_port(&self, request: &request::Request, port: &Port) -> Answer {
        self.about_switch(request, port)
            .or_else(|| port::execute(port, request))
            .unwrap_or_else(|| Err(format!("{}: not a command of a port", request.command)))
    }
}
