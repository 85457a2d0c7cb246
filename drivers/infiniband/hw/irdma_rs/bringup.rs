// SPDX-License-Identifier: GPL-2.0

//! Bringing a function up, and taking it down again.
//!
//! Each stage is an owner: making it does the stage's work, dropping it undoes it. [`Core`] holds them
//! in the reverse order of making, which is the order in which its fields are dropped. A stage that
//! fails leaves nothing of itself, and the owners of the stages before it do the rest.
//!
//! Undoing never fails. What the device does not confirm to have let go of is kept until the last
//! stage, the control queue pair, is gone; a device that does not even let go of that keeps the memory
//! for good.

use crate::{
    cqp::Cqp,
    dev::Dev,
    events::{
        aeq::Aeq,
        ceq::Ceq,
        vectors::{
            AeqSlot,
            AeqWork,
            Irq,
            Plan, //
        },
    },
    features,
    hmc::Hmc,
    lan::Port,
    regs::*,
    watchdog::Watchdog, //
};
use kernel::{
    io::poll::read_poll_timeout,
    prelude::*,
    sync::Arc,
    time::Delta, //
};
use rdma::{
    iidc::VectorSet,
    sys::cpu, //
};

/// Fewest vectors to work with: one for asynchronous and one for completion events.
const MIN_VECTORS: usize = 2;

/// How long the engine may take to become ready.
const READY_TIMEOUT: Delta = Delta::from_secs(15);

/// A function that is up.
pub(crate) struct Core {
    // Dropped from top to bottom.
    _watchdog: Watchdog,
    _aeq: AeqStage,
    _ceqs: KVec<CeqStage>,
    _ceq0: CeqStage,
    _ccq: CcqStage,
    _hmc: HmcStage,
    _cqp: CqpStage,
    dev: Arc<Dev>,
}

impl Core {
    /// Brings the function up, for about `wanted_qps` queue pairs. Process context.
    ///
    /// # Errors
    ///
    /// Those of the stages, each with a line in the log; the function is as before then.
    pub(crate) fn new(port: Arc<Port>, wanted_qps: u64) -> Result<Self> {
        let cpus = cpu::online();
        let vectors =
            VectorSet::acquire(port.function().clone(), MIN_VECTORS, cpus.saturating_add(1))
                .inspect_err(|error| {
                    dev_err!(
                        port.log(),
                        "fewer than {MIN_VECTORS} interrupt vectors, error {}\n",
                        error.to_errno()
                    );
                })?;
        wait_ready(&port)?;

        let mut cqp_stage = CqpStage::new(&port)?;
        let cqp = cqp_stage.cqp.clone();
        let firmware = features::query(&port, &cqp)?;
        let hmc = Hmc::negotiate(port.clone(), cqp.clone(), wanted_qps)?;
        cqp_stage.hmc = Some(hmc.clone());
        let dev = Dev::new(port.clone(), cqp.clone(), hmc.clone(), firmware)?;
        let hmc_stage = HmcStage(hmc.clone());
        hmc.announce()?;
        let ccq = CcqStage::new(&port, &cqp)?;

        let plan = Plan::new(vectors.len(), cpus, hmc.max_ceqs());
        let shared = plan.shared.then(|| dev.aeq.clone());
        let ceq0 = CeqStage::new(&dev, &vectors, plan, 0, shared)?;
        let mut ceqs = KVec::with_capacity(vectors.len(), GFP_KERNEL)?;
        for id in 1..plan.ceqs {
            ceqs.push(CeqStage::new(&dev, &vectors, plan, id, None)?, GFP_KERNEL)?;
        }
        dev.set_ceqs(plan.ceqs);
        let vector = if plan.shared {
            Some(ceq0.vector())
        } else {
            None
        };
        let aeq = AeqStage::new(&dev, &vectors, vector)?;
        let watchdog = Watchdog::start(dev.clone())?;

        Ok(Self {
            _watchdog: watchdog,
            _aeq: aeq,
            _ceqs: ceqs,
            _ceq0: ceq0,
            _ccq: ccq,
            _hmc: hmc_stage,
            _cqp: cqp_stage,
            dev,
        })
    }

    /// What the other parts of the driver work with.
    pub(crate) fn dev(&self) -> &Arc<Dev> {
        &self.dev
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // A reset the driver has not heard of took the control queue pair away: nothing will answer.
        if !self.dev.cqp.exists() {
            self.dev.cqp.shut(EBUSY);
        }
    }
}

/// Waits until the engine's processors are ready, and looks at its doorbells.
fn wait_ready(port: &Port) -> Result {
    let ready = read_poll_timeout(
        || {
            Ok([
                port.read(GLPE_CPUSTATUS0)?.into_raw(),
                port.read(GLPE_CPUSTATUS1)?.into_raw(),
                port.read(GLPE_CPUSTATUS2)?.into_raw(),
            ])
        },
        |status| status.iter().all(|status| *status == CPU_READY),
        Delta::from_millis(100),
        READY_TIMEOUT,
    );
    if let Err(error) = ready {
        dev_err!(
            port.log(),
            "protocol engine not ready, CPU status {:#x} {:#x} {:#x}\n",
            port.read(GLPE_CPUSTATUS0)
                .map_or(0, |status| status.into_raw()),
            port.read(GLPE_CPUSTATUS1)
                .map_or(0, |status| status.into_raw()),
            port.read(GLPE_CPUSTATUS2)
                .map_or(0, |status| status.into_raw())
        );
        return Err(error);
    }
    let doorbells = port.read(GLPCI_LBARCTRL)?.pe_db_size().get();
    if !matches!(doorbells, 1 | 2) {
        dev_err!(
            port.log(),
            "no doorbell space, LBARCTRL doorbell size code {doorbells}\n"
        );
        return Err(ENODEV);
    }
    Ok(())
}

/// The control queue pair.
struct CqpStage {
    cqp: Arc<Cqp>,
    /// Host memory, to give up if the device does not let go.
    hmc: Option<Arc<Hmc>>,
}

impl CqpStage {
    fn new(port: &Arc<Port>) -> Result<Self> {
        let cqp = Cqp::new(port.clone())?;
        cqp.create()?;
        Ok(Self { cqp, hmc: None })
    }
}

impl Drop for CqpStage {
    fn drop(&mut self) {
        if self.cqp.destroy() {
            return;
        }
        if let Some(hmc) = &self.hmc {
            hmc.leak();
        }
    }
}

/// Host memory, announced.
struct HmcStage(Arc<Hmc>);

impl Drop for HmcStage {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

/// The control completion queue.
struct CcqStage(Arc<Cqp>);

impl CcqStage {
    fn new(port: &Port, cqp: &Arc<Cqp>) -> Result<Self> {
        cqp.create_ccq(port.vsi())?;
        Ok(Self(cqp.clone()))
    }
}

impl Drop for CcqStage {
    fn drop(&mut self) {
        // A queue the device did not let go of stays with the control queue pair.
        let _ = self.0.destroy_ccq();
    }
}

/// A completion event queue with its interrupt. The first one announces completions of the control
/// queue pair, too.
struct CeqStage {
    dev: Arc<Dev>,
    id: u32,
    ceq: Option<Arc<Ceq>>,
    irq: Option<Irq>,
}

impl CeqStage {
    fn new(
        dev: &Arc<Dev>,
        vectors: &Arc<VectorSet>,
        plan: Plan,
        id: u32,
        aeq: Option<Arc<AeqSlot>>,
    ) -> Result<Self> {
        let ceq = Ceq::create(dev, id)?;
        // From here on the destructor cleans up.
        let mut stage = Self {
            dev: dev.clone(),
            id,
            ceq: Some(ceq.clone()),
            irq: None,
        };
        let irq = Irq::request(
            dev,
            vectors,
            plan.vector_of(id),
            c"irdma_rs_ceq",
            Some(ceq.clone()),
            aeq,
        )?;
        let vector = irq.vector();
        stage.irq = Some(irq);
        ceq.route(dev, vector)?;
        if let Some(irq) = &stage.irq {
            irq.enable();
        }
        if id == 0 {
            dev.cqp.events_on();
        }
        Ok(stage)
    }

    /// The device's number of the queue's vector.
    fn vector(&self) -> u16 {
        self.irq.as_ref().map_or(0, Irq::vector)
    }
}

impl Drop for CeqStage {
    fn drop(&mut self) {
        if self.id == 0 {
            self.dev.cqp.events_off();
        }
        let Some(ceq) = self.ceq.take() else {
            return;
        };
        ceq.unroute(&self.dev);
        // Waits for the handler.
        self.irq = None;
        ceq.destroy(&self.dev.cqp);
    }
}

/// The asynchronous event queue with its interrupt, if it has one of its own.
struct AeqStage {
    dev: Arc<Dev>,
    aeq: Option<Arc<Aeq>>,
    work: Option<Arc<AeqWork>>,
    irq: Option<Irq>,
}

impl AeqStage {
    /// `shared` is the vector of another queue that serves this one, too.
    fn new(dev: &Arc<Dev>, vectors: &Arc<VectorSet>, shared: Option<u16>) -> Result<Self> {
        let aeq = Aeq::create(dev)?;
        // From here on the destructor cleans up.
        let mut stage = Self {
            dev: dev.clone(),
            aeq: Some(aeq.clone()),
            work: None,
            irq: None,
        };
        let work = AeqWork::new(dev.clone(), aeq.clone())?;
        stage.work = Some(work.clone());
        dev.aeq.set(Some(work));
        match shared {
            Some(vector) => aeq.route(dev, vector)?,
            None => {
                let slot = Some(dev.aeq.clone());
                let irq = Irq::request(dev, vectors, 0, c"irdma_rs_aeq", None, slot)?;
                let vector = irq.vector();
                stage.irq = Some(irq);
                aeq.route(dev, vector)?;
                if let Some(irq) = &stage.irq {
                    irq.enable();
                }
            }
        }
        // No interrupt tells of what was written before there was one.
        dev.aeq.kick();
        Ok(stage)
    }
}

impl Drop for AeqStage {
    fn drop(&mut self) {
        let Some(aeq) = self.aeq.take() else {
            return;
        };
        aeq.unroute(&self.dev);
        // Waits for the handler of an interrupt of its own.
        self.irq = None;
        // After this no handler starts work, and none is about to.
        self.dev.aeq.set(None);
        if let Some(work) = &self.work {
            AeqWork::stop(work);
        }
        aeq.destroy(&self.dev.cqp);
        self.work = None;
    }
}
