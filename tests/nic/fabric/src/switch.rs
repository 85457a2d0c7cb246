// SPDX-License-Identifier: GPL-2.0
//! The switch: ports by number, forwarding, the thread that does what is due, and the capture of all
//! that is forwarded.

use crate::capture::Capture;
use crate::clock::{Clock, Delayed, Late};
use crate::forward::{Forwarding, Out, PortId};
use crate::frame::Frame;
use crate::lock;
use crate::port::{Port, Receiver};
use crate::Direction;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, Weak};
use std::thread;
use std::time::Duration;

/// What one switch knows, and what waits for its time.
#[derive(Default)]
struct State {
    forwarding: Forwarding,
    delayed: Delayed,
    /// The power is off; when it comes back, so do the links of these ports.
    off: Option<Vec<PortId>>,
    /// The switch is gone, and its thread is to end.
    gone: bool,
}

impl State {
    fn next(&self) -> Option<Duration> {
        let tick = match self.off {
            Some(_) => None,
            None => self.forwarding.next_tick(),
        };
        [tick, self.delayed.next()].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Duration) -> Vec<Out> {
        match self.off {
            Some(_) => Vec::new(),
            None => self.forwarding.tick(now),
        }
    }

    fn forward(&mut self, now: Duration, ingress: PortId, frame: &Frame) -> Vec<Out> {
        match self.off {
            Some(_) => Vec::new(),
            None => self.forwarding.forward(now, ingress, frame),
        }
    }
}

/// The part of a switch that its thread holds.
#[derive(Default)]
struct Works {
    state: Mutex<State>,
    earlier: Condvar,
    clock: Clock,
}

impl Works {
    /// Changes the state; the thread looks again at what is due next.
    fn with<R>(&self, f: impl FnOnce(&mut State, Duration) -> R) -> R {
        let mut state = lock(&self.state);
        let before = state.next();
        let result = f(&mut state, self.clock.now());
        let after = state.next();
        if after.is_some_and(|after| before.is_none_or(|before| after < before)) {
            self.earlier.notify_one();
        }
        result
    }

    /// Waits for what is due, and returns it; `None` when the switch is gone.
    fn wait(&self) -> Option<(Vec<Out>, Vec<Late>)> {
        let mut state = lock(&self.state);
        loop {
            let now = self.clock.now();
            state = match state.next() {
                _ if state.gone => return None,
                Some(due) if due <= now => break,
                Some(due) => {
                    let waited = self.earlier.wait_timeout(state, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.earlier.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        let now = self.clock.now();
        let own = state.tick(now);
        let late = std::iter::from_fn(|| state.delayed.pop(now)).collect();
        Some((own, late))
    }
}

/// An Ethernet switch and the ports attached to it.
pub struct Fabric {
    id: u8,
    ports: RwLock<Vec<Arc<Port>>>,
    works: Arc<Works>,
    capture: Capture,
    capture_dir: Option<PathBuf>,
}

impl Fabric {
    /// A switch without ports. With `capture_dir` all frames are captured there, in `fabric.pcap`
    /// and in one file for each port.
    ///
    /// # Errors
    ///
    /// When the capture file or the thread cannot be made.
    pub fn new(capture_dir: Option<PathBuf>) -> io::Result<Arc<Self>> {
        Self::numbered(0, capture_dir)
    }

    /// The same for one of several switches. The number tells their own addresses and their captures
    /// apart: `fabric.pcap`, `fabric1.pcap` and so on.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn numbered(id: u8, capture_dir: Option<PathBuf>) -> io::Result<Arc<Self>> {
        let fabric = Arc::new(Self {
            id,
            ports: RwLock::default(),
            works: Arc::default(),
            capture: Capture::default(),
            capture_dir,
        });
        if let Some(dir) = &fabric.capture_dir {
            let name = match id {
                0 => "fabric.pcap".to_owned(),
                id => format!("fabric{id}.pcap"),
            };
            fabric.capture.start(&dir.join(name))?;
        }
        let (works, weak) = (fabric.works.clone(), Arc::downgrade(&fabric));
        thread::Builder::new()
            .name(format!("switch{id}"))
            .spawn(move || work(&works, &weak))?;
        Ok(fabric)
    }

    /// The switch's number.
    pub fn id(&self) -> u8 {
        self.id
    }

    /// Adds a port called `name`; its capture file is called after it.
    ///
    /// # Errors
    ///
    /// When the capture file cannot be made.
    pub fn attach(self: &Arc<Self>, name: &str) -> io::Result<Arc<Port>> {
        let capture_path = self
            .capture_dir
            .as_ref()
            .map(|dir| dir.join(format!("{name}.pcap")));
        // Both tables grow under one lock, so that a port has the same number in both.
        let mut ports = self.ports.write().unwrap_or_else(PoisonError::into_inner);
        let id = ports.len();
        let port = Port::new(id, name, Arc::downgrade(self), capture_path)?;
        self.works.with(|state, _| state.forwarding.add_port());
        ports.push(port.clone());
        Ok(port)
    }

    /// Links two switches by a cable between new ports, each called after the switch at the other
    /// end. There is no spanning tree: links must not close a circle.
    ///
    /// # Errors
    ///
    /// As for [`attach`](Self::attach).
    pub fn link(one: &Arc<Self>, other: &Arc<Self>) -> io::Result<()> {
        let near = one.attach(&format!("switch{}-{}", one.id, other.id))?;
        let far = other.attach(&format!("switch{}-{}", other.id, one.id))?;
        near.connect(Arc::new(Cable(Arc::downgrade(&far))))?;
        far.connect(Arc::new(Cable(Arc::downgrade(&near))))
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

    /// Looks at the forwarding state, or changes it, at the time that is handed over.
    pub fn forwarding<R>(&self, f: impl FnOnce(&mut Forwarding, Duration) -> R) -> R {
        self.works.with(|state, now| f(&mut state.forwarding, now))
    }

    /// Restarts the switch with its links up: settings stay, all else is forgotten.
    pub fn restart(&self) {
        self.forwarding(Forwarding::restart);
    }

    /// Whether the power is on.
    pub fn is_on(&self) -> bool {
        self.works.with(|state, _| state.off.is_none())
    }

    /// Takes the power from the switch, and so all links down, or gives it back: links that were up
    /// come up, settings stay, all else is forgotten. In between nothing is forwarded, whatever is
    /// done to links.
    pub fn power(&self, on: bool) {
        let ports = self.ports();
        let changed = if on {
            self.works.with(|state, _| state.off.clone())
        } else {
            let up = ports.iter().filter(|port| port.link_up());
            let up: Vec<PortId> = up.map(|port| port.id()).collect();
            self.works.with(|state, _| match state.off {
                Some(_) => None,
                None => {
                    state.delayed = Delayed::default();
                    Some(state.off.insert(up).clone())
                }
            })
        };
        for id in changed.into_iter().flatten() {
            if let Some(port) = ports.get(id) {
                port.set_link(on);
            }
        }
        if on {
            self.works.with(|state, now| {
                if state.off.take().is_some() {
                    state.forwarding.restart(now);
                }
            });
        }
    }

    /// Forwards a frame that came in at `ingress`.
    pub(crate) fn forward(&self, ingress: PortId, frame: &Frame) {
        self.capture.frame(frame);
        let outs = self
            .works
            .with(|state, now| state.forward(now, ingress, frame));
        self.deliver(outs);
    }

    fn deliver(&self, outs: Vec<Out>) {
        let ports = self.ports.read().unwrap_or_else(PoisonError::into_inner);
        for (id, frame) in outs {
            if let Some(port) = ports.get(id) {
                port.enqueue(frame);
            }
        }
    }

    /// A frame of a port goes on after `delay`; `false` if too many do.
    pub(crate) fn delay(&self, delay: Duration, late: Late) -> bool {
        self.works
            .with(|state, now| state.delayed.push(now.saturating_add(delay), late))
    }

    /// A port's link went up or down.
    pub(crate) fn link_changed(&self, port: PortId, up: bool) {
        self.forwarding(|forwarding, now| forwarding.link_changed(now, port, up));
    }

    /// A delayed frame goes on.
    fn go_on(&self, late: Late) {
        let port = self.ports().into_iter().nth(late.port);
        match (late.direction, port) {
            (Direction::Transmit, Some(port)) => port.go_on_transmit(self, &late.frame),
            (Direction::Receive, Some(port)) => port.go_on_receive(&late.frame),
            (_, None) => {}
        }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        lock(&self.works.state).gone = true;
        self.works.earlier.notify_all();
    }
}

/// The thread of a switch.
fn work(works: &Works, fabric: &Weak<Fabric>) {
    while let Some((own, late)) = works.wait() {
        let Some(fabric) = fabric.upgrade() else {
            return;
        };
        for (_, frame) in &own {
            fabric.capture.frame(frame);
        }
        fabric.deliver(own);
        late.into_iter().for_each(|late| fabric.go_on(late));
    }
}

/// One end of a cable between switches: what comes here goes in at the port at the other end.
struct Cable(Weak<Port>);

impl Receiver for Cable {
    fn receive(&self, frame: &[u8]) {
        if let Some(port) = self.0.upgrade() {
            port.send(frame.to_vec());
        }
    }

    fn link_changed(&self, up: bool) {
        if let Some(port) = self.0.upgrade() {
            port.set_link(up);
        }
    }
}
