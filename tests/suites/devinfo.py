# SPDX-License-Identifier: GPL-2.0
"""What the stock tools say of the device, beside what they say on stock irdma."""

import re
from pathlib import Path

from irdma_suites.ktap import FAIL, PASS, SKIP, Outcome
from irdma_suites.suite import Suite

SUITE = Suite(
    about="ibv_devinfo, rdma link, rdma resource, ibv_ud_pingpong; values as stock's",
    guests=2,
    timeout=120)

#: Where we answer otherwise than stock irdma, and why that is better.
BETTER = {
    "max_qp": "tables sized for need: see memory per load",
    "max_cq": "tables sized for need",
    "max_mr": "tables sized for need",
    "max_pd": "tables sized for need",
    "max_ah": "tables sized for need",
    "max_mcast_grp": "what the device takes, not the number of QPs",
    "max_total_mcast_qp_attach": "follows max_mcast_grp",
    "device_cap_flags": "memory windows and fast registration are not offered while "
                        "their operations are absent",
    "device_cap_flags_ex": "as device_cap_flags",
    "max_cqe": "what can be had: a user's queue takes two ring entries for each asked for",
    "max_mw": "no memory windows while alloc_mw is absent",
    "max_qp_rd_atom": "no RC yet",
    "max_qp_init_rd_atom": "no RC yet",
    "max_res_rd_atom": "no RC yet, and follows max_qp",
    "max_ee_rd_atom": "no RC yet",
    "max_fast_reg_page_list_len": "no fast registration yet",
}


def guest(g) -> None:
    """Both nodes look; the pingpong goes between them."""
    if g.leads:
        listed = g.run("ibv_devices")
        g.check("ibv_devices lists the device", g.device in listed.stdout, listed.stdout)
        about = g.run("ibv_devinfo", "-v", "-d", g.device)
        g.check("ibv_devinfo -v", about.returncode == 0, about.stdout)
        (g.share / "devinfo").write_text(about.stdout)
        link = g.run("rdma", "link")
        g.check("rdma link: active on the interface",
                re.search(rf"{g.device}/1 state ACTIVE .*netdev {g.netdev}\b", link.stdout)
                is not None, link.stdout)
        resources = g.run("rdma", "resource", "show", g.device)
        g.check("rdma resource show: PD, CQ and QP of the MAD layer",
                re.search(r"pd [1-9]\d* cq [1-9]\d* qp [1-9]", resources.stdout) is not None,
                resources.stdout)
        queues = g.run("rdma", "resource", "show", "qp", "link", f"{g.device}/1")
        g.check("rdma resource show qp: the GSI QP",
                "type GSI" in queues.stdout, queues.stdout)
        name = g.run("rdma", "dev", "show", g.device)
        (g.share / "rdma-dev").write_text(name.stdout)
    _pingpong(g, "IPv4", g.ip, 1)
    _pingpong(g, "IPv6", g.ip6, 2)


def _pingpong(g, family: str, address: str, number: int) -> None:
    index = g.gid_index(address)
    if not g.check(f"{family} address is in the GID table", index is not None, address):
        return
    words = ["ibv_ud_pingpong", "-d", g.device, "-g", index, "-n", 200,
             "-p", 18600 + number]
    g.sync()
    if not g.leads:
        # The server is up when its port is; the loop ends with the first answer.
        def connects():
            done = g.run(*words, g.peers[0])
            connects.said = done.stdout
            return done.returncode == 0 or "Couldn't connect" not in done.stdout
        ended = g.wait(connects, 60)
        g.check(f"ibv_ud_pingpong -g, {family}, client",
                ended and "200 iters" in connects.said, connects.said)
    else:
        done = g.run(*words, timeout=90)
        g.check(f"ibv_ud_pingpong -g, {family}, server",
                done.returncode == 0 and "200 iters" in done.stdout, done.stdout)
    g.sync()


def values(text: str) -> dict:
    """Attribute -> value of `ibv_devinfo -v`; lists are joined."""
    found, key = {}, None
    for line in text.splitlines():
        match = re.match(r"\s+([A-Za-z_][\w \[\]]*):\s*(.*)$", line)
        if match:
            key, value = match.group(1).strip(), match.group(2).strip()
            found[key] = value
        elif key and line.strip():
            found[key] = f"{found[key]} {line.strip()}".strip()
    return found


def judge(shares: dict):
    """Each value of ours against stock's."""
    files = {d: Path(s) / "devinfo" for d, s in shares.items()}
    if set(files) != {"irdma_rs", "irdma"}:
        yield "irdma_rs", Outcome("values equal stock irdma's", SKIP,
                                  "only one of the two drivers was run")
        return
    missing = [d for d, f in files.items() if not f.is_file()]
    if missing:
        yield "irdma_rs", Outcome("values equal stock irdma's", FAIL,
                                  f"no ibv_devinfo of {', '.join(missing)}")
        return
    ours, stocks = (values(files[d].read_text()) for d in ("irdma_rs", "irdma"))
    for key in sorted(set(ours) | set(stocks)):
        mine, his = ours.get(key, "absent"), stocks.get(key, "absent")
        name = f"{key} as on stock irdma"
        if mine == his:
            yield "irdma_rs", Outcome(name, PASS)
        elif key in BETTER:
            yield "irdma_rs", Outcome(f"{key} better than stock's: {mine}, not {his} "
                                      f"({BETTER[key]})", PASS)
        else:
            yield "irdma_rs", Outcome(name, FAIL, f"{mine}, stock has {his}")
