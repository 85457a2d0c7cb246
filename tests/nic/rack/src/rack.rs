// SPDX-License-Identifier: GPL-2.0
//! Makes the rack in a directory.

use crate::card::{Card, MakeHalves, Slots};
use crate::control::{channel, Control, Target};
use crate::log::{CardLog, LogFile};
use crate::socket::Sockets;
use crate::switches::Switches;
use nic_fabric::{stream, Fabric, Port};
use nic_vfio::config::Identity;
use nic_vfio::memory::GuestMemory;
use nic_vfio::msix::Msix;
use nic_vfio::server::Function;
use nic_vfio::Backend;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

/// MSI-X vectors of a card.
pub const VECTORS: u16 = 64;
/// Cards that fit: the last byte of the station address tells them apart.
pub const MOST_CARDS: u8 = 64;

/// What the rack holds.
pub struct Setup {
    /// Where sockets and files go.
    pub dir: PathBuf,
    /// Number of cards.
    pub nics: u8,
    /// Number of ports for plain guests.
    pub ports: u8,
    /// The switches.
    pub switches: Switches,
    /// Where captures go.
    pub pcap: Option<PathBuf>,
    /// Where the log goes.
    pub log: Option<PathBuf>,
}

/// A running rack. Its threads live until the process ends; dropping it removes its sockets.
pub struct Rack {
    control: Arc<Control>,
    _sockets: Sockets,
}

impl Rack {
    /// Makes everything; when this returns, all sockets listen.
    ///
    /// # Errors
    ///
    /// When a file, a socket or a thread cannot be made.
    pub fn new(setup: &Setup, make_halves: MakeHalves<'_>) -> io::Result<Self> {
        let mut sockets = Sockets::new(&setup.dir);
        let log = LogFile::open(setup.log.as_deref())?;
        let fabrics = setup.switches.make(setup.pcap.as_deref())?;
        let switch_of = |name: &str| setup.switches.of(name, &fabrics);
        std::fs::write(setup.dir.join("ice.pkg"), nic_ddp::package())?;
        let mut cards = Vec::new();
        for index in 0..setup.nics {
            let fabric = switch_of(&format!("nic{index}"))?;
            cards.push(plug_card(&mut sockets, fabric, &log, index, make_halves)?);
        }
        let mut ports = Vec::new();
        for index in 0..setup.ports {
            let fabric = switch_of(&format!("port{index}"))?;
            ports.push(plug_port(&mut sockets, fabric, index)?);
        }
        let control = Arc::new(Control::new(fabrics, cards, ports));
        for index in 0..usize::from(setup.nics) {
            let listener = sockets.listen(&format!("nic{index}.ctl"))?;
            channel::serve(listener, control.clone(), Target::Nic(index))?;
        }
        for index in 0..usize::from(setup.ports) {
            let listener = sockets.listen(&format!("port{index}.ctl"))?;
            channel::serve(listener, control.clone(), Target::Port(index))?;
        }
        channel::serve(
            sockets.listen("control.sock")?,
            control.clone(),
            Target::Nic(0),
        )?;
        Ok(Self {
            control,
            _sockets: sockets,
        })
    }

    /// The control of the rack.
    pub fn control(&self) -> &Control {
        &self.control
    }
}

/// The station address of a card: locally administered.
pub fn mac(index: u8) -> [u8; 6] {
    [0x02, 0xe8, 0x10, 0x00, 0x00, index.saturating_add(1)]
}

/// The serial number of a card: its station address as an EUI-64.
pub fn serial(index: u8) -> u64 {
    let [a, b, c, d, e, f] = mac(index);
    u64::from_be_bytes([a, b, c, 0xff, 0xfe, d, e, f])
}

fn plug_card(
    sockets: &mut Sockets,
    fabric: &Arc<Fabric>,
    log: &Arc<LogFile>,
    index: u8,
    make_halves: MakeHalves<'_>,
) -> io::Result<Arc<Card>> {
    let name = format!("nic{index}");
    let listener = sockets.listen(&format!("{name}.sock"))?;
    let package = sockets.dir().join(nic_ddp::file_name(serial(index)));
    std::fs::write(package, nic_ddp::package())?;
    let memory = Arc::new(GuestMemory::new());
    let msix = Arc::new(Msix::new(VECTORS));
    let port = fabric.attach(&name)?;
    let log = CardLog::new(&name, log.clone());
    let slots = Slots {
        memory: memory.clone(),
        msix: msix.clone(),
        port: port.clone(),
        mac: mac(index),
        log: log.clone(),
    };
    let card = Card::new(slots, make_halves);
    port.connect(card.clone())?;
    let identity = Identity {
        serial: serial(index),
        vectors: VECTORS,
    };
    let function = Function::new(identity, memory, msix, card.clone());
    let backend = card.clone();
    thread::Builder::new().name(name).spawn(move || {
        let error = function.run(&listener);
        backend.log(format_args!("vfio-user: no more clients: {error}"));
    })?;
    Ok(card)
}

fn plug_port(sockets: &mut Sockets, fabric: &Arc<Fabric>, index: u8) -> io::Result<Arc<Port>> {
    let name = format!("port{index}");
    let listener = sockets.listen(&format!("{name}.sock"))?;
    let port = fabric.attach(&name)?;
    stream::serve(listener, port.clone())?;
    Ok(port)
}
