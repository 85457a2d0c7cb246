// SPDX-License-Identifier: GPL-2.0
//! Runs the rack until it is told to stop.

use clap::Parser;
use nic_bus::{Card, Host, LanFunction, RdmaFunction};
use nic_lan::Lan;
use nic_rack::rack::{Rack, Setup, MOST_CARDS, VECTORS};
use nic_rack::switches::{Layout, Switches};
use nic_rdma::Rdma;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::thread;

/// Virtual E810 cards and the Ethernet fabric between them, for QEMU's vfio-user.
///
/// Prints "ready" when all sockets listen. Ends when standard input closes, or on SIGTERM.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Directory for sockets and files.
    #[arg(long)]
    dir: PathBuf,

    /// Number of cards.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=i64::from(MOST_CARDS)))]
    nics: u8,

    /// Number of ports for guests with an ordinary network card.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=64))]
    ports: u8,

    /// What the cards offer, like qps=65536,mcast=4096; also cqs, mrs, ahs, arps, pbles, sds, ceqs.
    #[arg(long, value_name = "NAME=N,..", default_value = "", value_parser = nic_rdma::Config::profile)]
    card: nic_rdma::Config,

    /// Switches learn stations, instead of sending every frame everywhere.
    #[arg(long)]
    learn: bool,

    /// How switches listen to IGMP and MLD, and ask themselves. SETTINGS like interval=5,response=1
    /// (in seconds), last_member, robustness, querier=false, fast_leave=true, unregistered=flood.
    #[arg(long, value_name = "off|SETTINGS", default_value = "", value_parser = snoop_settings)]
    snoop: Snoop,

    /// Several switches in a row: their ports with commas between, the switches with slashes, like
    /// nic0,port0/nic1. What is not named is at the first.
    #[arg(long, value_name = "LAYOUT", default_value = "", value_parser = Layout::parse)]
    switches: Layout,

    /// Captures all frames into this directory.
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,

    /// Log file instead of standard error.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("rack: {e}");
            ExitCode::FAILURE
        }
    }
}

/// How switches snoop, if they do.
#[derive(Clone, Copy, Debug)]
struct Snoop(Option<nic_fabric::snoop::Config>);

fn snoop_settings(text: &str) -> Result<Snoop, String> {
    match text {
        "off" => Ok(Snoop(None)),
        text => nic_fabric::snoop::Config::default()
            .change(text)
            .map(|config| Snoop(Some(config))),
    }
}

/// The halves of a card.
fn halves(
    host: Host,
    card: Weak<dyn Card>,
    profile: nic_rdma::Config,
) -> (Arc<dyn LanFunction>, Arc<dyn RdmaFunction>) {
    let config = nic_lan::Config {
        vectors: VECTORS,
        ..Default::default()
    };
    let lan = Lan::new(host.clone(), card, config);
    (lan, Rdma::with_config(host, profile))
}

fn run(args: Args) -> io::Result<()> {
    let (stop, stopped) = mpsc::channel();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let on_signal = stop.clone();
    thread::spawn(move || {
        signals.forever().next();
        let _ = on_signal.send(());
    });
    let setup = Setup {
        dir: args.dir,
        nics: args.nics,
        ports: args.ports,
        switches: Switches {
            layout: args.switches,
            learn: args.learn,
            snoop: args.snoop.0,
        },
        pcap: args.pcap,
        log: args.log,
    };
    let rack = Rack::new(&setup, &|host, card| halves(host, card, args.card.clone()))?;
    println!("ready");
    io::stdout().flush()?;
    thread::spawn(move || {
        let mut buf = [0; 64];
        while matches!(io::stdin().read(&mut buf), Ok(n) if n > 0) {}
        let _ = stop.send(());
    });
    let _ = stopped.recv();
    drop(rack);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snoop(words: &[&str]) -> Option<nic_fabric::snoop::Config> {
        let all = ["rack", "--dir", "."].iter().chain(words);
        Args::try_parse_from(all).unwrap().snoop.0
    }

    #[test]
    fn switches_snoop_unless_told_otherwise() {
        let usual = nic_fabric::snoop::Config::default();
        assert_eq!(snoop(&[]), Some(usual));
        assert_eq!(snoop(&["--snoop", "off"]), None);
        let fast = snoop(&["--snoop", "fast_leave=true"]).unwrap();
        assert!(fast.fast_leave && fast.interval == usual.interval);
        let wrong = ["rack", "--dir", ".", "--snoop", "on"];
        assert!(Args::try_parse_from(wrong).is_err());
    }
}
