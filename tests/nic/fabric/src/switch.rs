// SPDX-License-Identifier: GPL-2.0
//! The switch: ports by number, forwarding, and the capture of all it forwards.

use crate::capture::Capture;
use crate::forward::{Forwarding, PortId};
use crate::frame::Frame;
use crate::lock;
use crate::port::Port;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// An Ethernet switch and the ports attached to it.
#[derive(Default)]
pub struct Fabric {
    ports: RwLock<Vec<Arc<Port>>>,
    forwarding: Mutex<Forwarding>,
    capture: Capture,
    capture_dir: Option<PathBuf>,
}

impl Fabric {
    /// A switch without ports. With `capture_dir` all frames are captured there, in `fabric.pcap`
    /// and in one file for each port.
    ///
    /// # Errors
    ///
    /// When the capture file cannot be made.
    pub fn new(capture_dir: Option<PathBuf>) -> io::Result<Arc<Self>> {
        let fabric = Self {
            capture_dir,
            ..Self::default()
        };
        if let Some(dir) = &fabric.capture_dir {
            fabric.capture.start(&dir.join("fabric.pcap"))?;
        }
        Ok(Arc::new(fabric))
    }

    /// Adds a port called `name`; its capture file is called after it.
    ///
    /// # Errors
    ///
    /// When the capture file cannot be made.
    pub fn attach(self: &Arc<Self>, name: &str) -> io::Result<Arc<Port>> {
        let id = lock(&self.forwarding).add_port();
        let capture_path = self
            .capture_dir
            .as_ref()
            .map(|dir| dir.join(format!("{name}.pcap")));
        let port = Port::new(id, name, Arc::downgrade(self), capture_path)?;
        let mut ports = self.ports.write().unwrap_or_else(PoisonError::into_inner);
        ports.push(port.clone());
        Ok(port)
    }

    /// The port called `name`.
    pub fn port(&self, name: &str) -> Option<Arc<Port>> {
        self.ports().into_iter().find(|port| port.name() == name)
    }

    /// All ports in the order they were attached.
    pub fn ports(&self) -> Vec<Arc<Port>> {
        self.ports
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Forwards a frame that came in at `ingress`.
    pub(crate) fn forward(&self, ingress: PortId, frame: &Frame) {
        self.capture.frame(frame);
        let to = lock(&self.forwarding).destinations(ingress, frame);
        let ports = self.ports.read().unwrap_or_else(PoisonError::into_inner);
        for port in to.into_iter().filter_map(|id| ports.get(id)) {
            port.enqueue(frame.clone());
        }
    }
}
