// SPDX-License-Identifier: GPL-2.0
//! A port of the switch and the link to the device behind it.

use crate::capture::Capture;
use crate::clock::Late;
use crate::counters::{Counters, Traffic};
use crate::forward::PortId;
use crate::frame::{self, Frame};
use crate::impair::{Impairments, Rule, Status};
use crate::queue::{Entry, Queue};
use crate::recent::Recent;
use crate::switch::Fabric;
use crate::{lock, Direction};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

/// The device behind a port.
pub trait Receiver: Send + Sync {
    /// Takes a frame, on the port's delivery thread. It may block: only this port waits.
    fn receive(&self, frame: &[u8]);

    /// The link went up or down.
    fn link_changed(&self, _up: bool) {}
}

/// One port.
pub struct Port {
    id: PortId,
    name: String,
    fabric: Weak<Fabric>,
    link_up: AtomicBool,
    receiver: Mutex<Option<Arc<dyn Receiver>>>,
    queue: Queue,
    transmit_impairments: Mutex<Impairments>,
    receive_impairments: Mutex<Impairments>,
    counters: Counters,
    recent: Mutex<Recent>,
    capture: Capture,
    capture_path: Option<PathBuf>,
}

impl Port {
    pub(crate) fn new(
        id: PortId,
        name: &str,
        fabric: Weak<Fabric>,
        capture_path: Option<PathBuf>,
    ) -> io::Result<Arc<Self>> {
        let port = Arc::new(Self {
            id,
            name: name.to_owned(),
            fabric,
            link_up: AtomicBool::new(true),
            receiver: Mutex::default(),
            queue: Queue::default(),
            transmit_impairments: Mutex::default(),
            receive_impairments: Mutex::default(),
            counters: Counters::default(),
            recent: Mutex::default(),
            capture: Capture::default(),
            capture_path,
        });
        port.start_capture()?;
        Ok(port)
    }

    /// Connects the device and starts delivering to it, on a thread that lives as long as the port.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn connect(self: &Arc<Self>, receiver: Arc<dyn Receiver>) -> io::Result<()> {
        let first = lock(&self.receiver).replace(receiver).is_none();
        if first {
            let port = self.clone();
            let deliver = move || loop {
                port.queue
                    .take()
                    .into_iter()
                    .for_each(|entry| port.deliver(entry));
            };
            thread::Builder::new()
                .name(format!("{} rx", self.name))
                .spawn(deliver)?;
        }
        Ok(())
    }

    /// The port's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port's counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether the link is up.
    pub fn link_up(&self) -> bool {
        self.link_up.load(Ordering::Acquire)
    }

    /// Takes the link up or down and tells the device if that is a change.
    pub fn set_link(&self, up: bool) {
        let was_up = self.link_up.swap(up, Ordering::AcqRel);
        let receiver = lock(&self.receiver).clone();
        if was_up == up {
            return;
        }
        if let Some(fabric) = self.fabric.upgrade() {
            fabric.link_changed(self.id, up);
        }
        if let Some(receiver) = receiver {
            receiver.link_changed(up);
        }
    }

    /// Sends what the device hands over.
    pub fn send(&self, bytes: Vec<u8>) {
        match frame::from_device(bytes) {
            Some(frame) => self.pass(Direction::Transmit, frame, |frame| {
                if let Some(fabric) = self.fabric.upgrade() {
                    fabric.forward(self.id, frame);
                }
            }),
            None => self.counters.malformed.add(1),
        }
    }

    /// Puts a frame in the way of the device as if the fabric had forwarded it here.
    pub fn inject(&self, bytes: Vec<u8>) -> bool {
        frame::from_device(bytes).is_some_and(|frame| self.enqueue(frame))
    }

    pub(crate) fn enqueue(&self, frame: Frame) -> bool {
        let queued = self.queue.push(frame);
        if !queued {
            self.counters.overflow.add(1);
        }
        queued
    }

    fn deliver(&self, entry: Entry) {
        let Some(receiver) = lock(&self.receiver).clone() else {
            return;
        };
        match entry {
            Entry::Fresh(frame) => {
                self.pass(Direction::Receive, frame, |frame| receiver.receive(frame));
            }
            Entry::Late(frame) if self.link_up() => {
                self.passed(Direction::Receive, &frame);
                receiver.receive(&frame);
            }
            Entry::Late(_) => self.counters.receive.link_down.add(1),
        }
    }

    fn direction(&self, direction: Direction) -> (&Mutex<Impairments>, &Traffic) {
        match direction {
            Direction::Transmit => (&self.transmit_impairments, &self.counters.transmit),
            Direction::Receive => (&self.receive_impairments, &self.counters.receive),
        }
    }

    /// Takes a frame over the link: impairments, counters and capture, then `onward`.
    fn pass(&self, direction: Direction, frame: Frame, onward: impl Fn(&Frame)) {
        let (impairments, traffic) = self.direction(direction);
        if !self.link_up() {
            traffic.link_down.add(1);
            return;
        }
        let passed = lock(impairments).pass(frame);
        if let Some(action) = passed.action {
            traffic.acted(action);
        }
        for (delay, frame) in passed.later {
            let late = Late {
                port: self.id,
                direction,
                frame,
            };
            let fabric = self.fabric.upgrade();
            if !fabric.is_some_and(|fabric| fabric.delay(delay, late)) {
                traffic.impaired.add(1);
            }
        }
        for frame in passed.now {
            self.passed(direction, &frame);
            onward(&frame);
        }
    }

    /// Counts, remembers and captures a frame that passed the link.
    fn passed(&self, direction: Direction, frame: &Frame) {
        let (_, traffic) = self.direction(direction);
        traffic.frames.add(1);
        traffic.bytes.add(u64::try_from(frame.len()).unwrap_or(0));
        lock(&self.recent).push(direction, frame);
        self.capture.frame(frame);
    }

    /// A frame from the device that was delayed goes on.
    pub(crate) fn go_on_transmit(&self, fabric: &Fabric, frame: &Frame) {
        if self.link_up() {
            self.passed(Direction::Transmit, frame);
            fabric.forward(self.id, frame);
        } else {
            self.counters.transmit.link_down.add(1);
        }
    }

    /// A frame to the device that was delayed goes on: past the impairments, by the queue, since the
    /// device may block.
    pub(crate) fn go_on_receive(&self, frame: &Frame) {
        if !self.queue.push_past(frame.clone()) {
            self.counters.overflow.add(1);
        }
    }

    /// The rules of a direction that still act.
    pub fn impairments(&self, direction: Direction) -> Vec<Status> {
        lock(self.direction(direction).0).list()
    }

    /// The port's number in its switch.
    pub fn id(&self) -> PortId {
        self.id
    }

    /// Adds an impairment to a direction.
    pub fn impair(&self, direction: Direction, rule: Rule) {
        lock(self.direction(direction).0).add(rule);
    }

    /// Removes all impairments; frames held back are lost and counted as such.
    pub fn clear_impairments(&self) {
        for direction in [Direction::Transmit, Direction::Receive] {
            let (impairments, traffic) = self.direction(direction);
            let held = lock(impairments).clear();
            traffic.impaired.add(u64::try_from(held.len()).unwrap_or(0));
        }
    }

    /// The last frames that passed, oldest first, with their number since start.
    pub fn recent(&self) -> Vec<(u64, Direction, Frame)> {
        lock(&self.recent).list()
    }

    /// Starts the port's capture file afresh; `Ok(false)` if the fabric has no directory for it.
    ///
    /// # Errors
    ///
    /// When the file cannot be made.
    pub fn start_capture(&self) -> io::Result<bool> {
        self.capture_path
            .as_ref()
            .map_or(Ok(false), |path| self.capture.start(path).map(|()| true))
    }

    /// Ends the capture file; `false` if none was under way.
    pub fn stop_capture(&self) -> bool {
        self.capture.stop()
    }
}
