# SPDX-License-Identifier: GPL-2.0
"""rdma_cm in a network namespace: with the device shared by all, and with one of its own."""

import ipaddress

from irdma_suites.suite import Suite

SUITE = Suite(
    about="groups joined from network namespaces, shared and exclusive, behind a snooping switch",
    guests=2,
    # rdma_rxe deletes its device when the interface goes to another namespace.
    snoop="interval=2,response=1,fast_leave=true",
    # The interface goes through namespaces, and may not come back as it was.
    alone=True,
    timeout=240)

SPACE = "lab"
#: A name for the namespace that the guest started with.
HOME = "home"
INSIDE = ("ip", "netns", "exec", SPACE)
#: What is run inside: joining, both kinds of members, leaving, and a process's end.
CASES = ("join: the group is joined", "join_ex: a send-only member sends",
         "leave: the group is left", "end: a process that is killed")


def guest(g) -> None:
    """Both guests move what they have into a namespace; node 0 leads."""
    _shared(g)
    _exclusive(g)


def _addresses(g) -> None:
    """Inside: the interface has its addresses again."""
    for words in (("link", "set", "lo", "up"), ("link", "set", g.netdev, "up"),
                  ("addr", "add", f"{g.ip}/24", "dev", g.netdev),
                  ("addr", "add", f"{g.ip6}/64", "dev", g.netdev, "nodad")):
        g.succeeds(f"inside: ip {words[0]} {words[1]} {words[2]}", "ip", "-n", SPACE, *words)


def _home(g) -> None:
    """The namespace goes, the interface comes back and gets its addresses."""
    g.succeeds("interface comes back", *INSIDE, "ip", "link", "set", g.netdev, "netns", "1")
    g.succeeds("namespace goes", "ip", "netns", "del", SPACE)
    for words in (("link", "set", g.netdev, "up"), ("addr", "add", f"{g.ip}/24", "dev", g.netdev),
                  ("addr", "add", f"{g.ip6}/64", "dev", g.netdev, "nodad")):
        g.run("ip", *words)
    g.check("the device is as before", g.wait(g.device_ready), "not in 30 s")
    g.sync()


def _ready_inside(g) -> bool:
    """Whether the device has its addresses, as seen from inside."""
    said = g.run(*INSIDE, "sh", "-c",
                 f"cat /sys/class/infiniband/{g.device}/ports/1/gids/* 2>/dev/null").stdout
    wanted = (ipaddress.ip_address(f"::ffff:{g.ip}"), ipaddress.ip_address(g.ip6))
    return all(ip.packed.hex(":", 2) in said for ip in wanted)


def _check(g, how: str) -> None:
    """Members of each kind, between the guests, from inside."""
    for case in CASES:
        if g.leads:
            g.ktap(f"{how} namespace", *INSIDE, "cm-check", "--only", case, g.peers[0])
        else:
            g.succeeds(f"{how} namespace: follower of {case!r}", *INSIDE, "cm-check", "--follow",
                       timeout=60)
        g.sync()


def _shared(g) -> None:
    """The mode that the kernel starts in: the device is in all namespaces."""
    g.succeeds("namespace", "ip", "netns", "add", SPACE)
    g.succeeds("interface goes in", "ip", "link", "set", g.netdev, "netns", SPACE)
    _addresses(g)
    g.check("shared: the device has the addresses of its interface inside",
            g.wait(lambda: _ready_inside(g)), "not in 30 s")
    g.sync()
    _check(g, "shared")
    _home(g)


def _exclusive(g) -> None:
    """The device is in one namespace, and nobody else sees it."""
    # A namespace is gone some time after it was deleted.
    g.check("exclusive mode", g.wait(lambda: g.run(
        "rdma", "system", "set", "netns", "exclusive").returncode == 0), "not in 30 s")
    g.succeeds("namespace", "ip", "netns", "add", SPACE)
    g.check("exclusive: a namespace without the device does not see it",
            g.device not in g.run(*INSIDE, "rdma", "dev").stdout, "it does")
    g.succeeds("exclusive: the device goes in", "rdma", "dev", "set", g.device, "netns", SPACE)
    g.check("exclusive: outside nobody sees the device",
            g.device not in g.run("rdma", "dev").stdout, "it is still there")
    g.succeeds("interface goes in", "ip", "link", "set", g.netdev, "netns", SPACE)
    _addresses(g)
    g.check("exclusive: the device has the addresses of its interface inside",
            g.wait(lambda: _ready_inside(g)), "not in 30 s")
    done = g.run("ibv_devinfo", "-d", g.device)
    g.check("exclusive: a program outside cannot open it", done.returncode != 0, done.stdout)
    g.sync()
    _check(g, "exclusive")
    g.succeeds("the first namespace gets a name", "ip", "netns", "attach", HOME, "1")
    g.succeeds("exclusive: the device comes back", *INSIDE, "rdma", "dev", "set", g.device,
               "netns", HOME)
    g.succeeds("the first namespace loses its name", "ip", "netns", "del", HOME)
    g.check("exclusive: the device is here again",
            g.wait(lambda: g.device in g.run("rdma", "dev").stdout), "not in 30 s")
    _home(g)
    g.check("shared mode again", g.wait(lambda: g.run(
        "rdma", "system", "set", "netns", "shared").returncode == 0), "not in 30 s")
