//! 914: records of name servers.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use phaseloop_node::dgram::{self, MESSAGE};
use phaseloop_node::dns::Resolver;
use phaseloop_node::events::once;
use phaseloop_node::net::{self, LISTENING};
use phaseloop_node::{Emitter, Error, Promise};

use crate::support::log;

super::ports! {
    Real "914-dns-records" => dns_records,
}

fn record(kind: &str, size: &str, data: &str) -> String {
    format!("c00c{kind}00010000003c{size}{data}")
}

/// Returns the code of a name, the number of its records, and their bytes.
fn known(name: &str) -> (u16, u8, String) {
    let one = |kind, size, data| (0, 1, record(kind, size, data));
    let two = |first: String, second: String| (0, 2, first + &second);
    match name {
        "a.test" => two(
            record("0001", "0004", "c0000201"),
            record("0001", "0004", "c0000202"),
        ),
        "aaaa.test" => one("001c", "0010", "20010db8000000000000000000000001"),
        "mx.test" => two(
            record("000f", "0007", "000a026d78c00c"),
            record("000f", "0004", "0005c00c"),
        ),
        "txt.test" => two(
            record("0010", "0008", "0361626303646566"),
            record("0010", "0001", "00"),
        ),
        "srv.test" => one("0021", "000e", "000100021f900173047465737400"),
        "packed.test" => one("0021", "000a", "000100021f900173c00c"),
        "cname.test" => one("0005", "0006", "03777777c00c"),
        "ns.test" => one("0002", "0006", "036e7331c00c"),
        "soa.test" => one(
            "0006",
            "0020",
            "026e73c00c04686f7374c00c0000000100000002000000030000000400000005",
        ),
        "naptr.test" => one("0023", "0013", "000a0014017303736970000172047465737400"),
        "chain.test" => two(
            record("0005", "0008", "0178047465737400"),
            "0178047465737400000100010000003c0004c0000203".into(),
        ),
        "odd.test" => one("0005", "0009", "06612e625c632ec00c"),
        "1.2.0.192.in-addr.arpa" => one("000c", "000b", "04686f7374047465737400"),
        "spoof.test" => one("0001", "0004", "c0000204"),
        "cut.test" => one("0001", "0004", "c0000205"),
        "loop.test" => one("000f", "0004", "000ac029"),
        "short.test" => (0, 2, record("0001", "0004", "c0000206")),
        "size.test" => one("0001", "0003", "c00002"),
        "nx.test" => (3, 0, String::new()),
        "servfail.test" => (2, 0, String::new()),
        "formerr.test" => (1, 0, String::new()),
        "notimp.test" => (4, 0, String::new()),
        "refused.test" => (5, 0, String::new()),
        _ => (0, 0, String::new()),
    }
}

fn answer(query: &[u8], flags: u16) -> (String, Vec<u8>) {
    let (mut end, mut labels) = (12, Vec::new());
    while query[end] > 0 {
        let next = end + 1 + usize::from(query[end]);
        labels.push(String::from_utf8_lossy(&query[end + 1..next]).into_owned());
        end = next;
    }
    let name = labels.join(".");
    let (code, count, records) = known(&name);
    let mut message = query[..end + 5].to_vec();
    message[2..4].copy_from_slice(&(flags | code).to_be_bytes());
    message[7] = count;
    let digits = |at| u8::from_str_radix(&records[at..at + 2], 16).unwrap();
    message.extend((0..records.len()).step_by(2).map(digits));
    (name, message)
}

async fn ask<T>(call: &str, name: &str, found: Promise<T>, show: impl Fn(&T) -> String)
where
    T: Clone + 'static,
{
    match found.await {
        Ok(found) => log(format!("{call} {name} {}", show(&found))),
        Err(reason) => {
            let error = Error::from(reason);
            log(format!(
                "{call} {} {}",
                error.code().unwrap(),
                error.message()
            ));
        }
    }
}

fn list<T: Clone>(items: &[T], show: impl Fn(&T) -> String) -> String {
    let items: Vec<_> = items.iter().map(show).collect();
    format!("[{}]", items.join(","))
}

#[expect(
    clippy::ptr_arg,
    reason = "`ask` calls it with the value of the promise"
)]
fn texts<T: Clone + Display>(items: &Vec<T>) -> String {
    list(items, |item| format!("{:?}", item.to_string()))
}

async fn dns_records() {
    let tcp = net::create_server(|socket| {
        socket.on_data_this(|socket, data| {
            let (name, message) = answer(&data[2..], 0x8180);
            log(format!("tcp {name}"));
            let size = u16::try_from(message.len()).unwrap().to_be_bytes();
            socket.end([&size, &message[..]].concat());
        });
    });
    let listens = once(&tcp, LISTENING);
    tcp.listen(("127.0.0.1", 0));
    listens.await.unwrap();
    let address: SocketAddr = tcp.address().unwrap();
    let udp = dgram::Socket::new();
    udp.on_this(MESSAGE, |udp, message| {
        let (name, reply) = answer(&message.bytes, 0x8180);
        match &*name {
            "silent.test" => {}
            "cut.test" => udp.send(&answer(&message.bytes, 0x8380).1, message.from),
            "spoof.test" => {
                let mut other = reply.clone();
                other[0] ^= 1;
                udp.send(&other, message.from);
                udp.send(&reply, message.from);
            }
            _ => udp.send(&reply, message.from),
        }
    });
    let bound = once(&udp, LISTENING);
    udp.bind(address);
    bound.await.unwrap();
    let mut resolver = Resolver::new().timeout(Duration::from_millis(200), 1);
    resolver.set_servers([address.to_string()]).unwrap();
    let r = Rc::new(resolver.clone());
    for name in [
        "a.test",
        "a.test.",
        "chain.test",
        "spoof.test",
        "cut.test",
        "short.test",
        "size.test",
        "nx.test",
        "empty.test",
        "servfail.test",
        "formerr.test",
        "notimp.test",
        "refused.test",
        "silent.test",
        "a..b",
        "",
    ] {
        ask("resolve4", name, r.resolve4(name), texts).await;
    }
    ask("resolve6", "aaaa.test", r.resolve6("aaaa.test"), texts).await;
    for name in ["mx.test", "loop.test"] {
        ask("resolveMx", name, r.resolve_mx(name), |found| {
            list(found, |mx| {
                let (exchange, priority) = (&mx.exchange, mx.priority);
                format!(r#"{{"exchange":"{exchange}","priority":{priority},"type":"MX"}}"#)
            })
        })
        .await;
    }
    ask(
        "resolveTxt",
        "txt.test",
        r.resolve_txt("txt.test"),
        |found| list(found, texts),
    )
    .await;
    for name in ["srv.test", "packed.test"] {
        ask("resolveSrv", name, r.resolve_srv(name), |found| {
            list(found, |srv| {
                let (name, port) = (&srv.name, srv.port);
                let (priority, weight) = (srv.priority, srv.weight);
                format!(
                    r#"{{"name":"{name}","port":{port},"priority":{priority},"weight":{weight},"type":"SRV"}}"#
                )
            })
        })
        .await;
    }
    for name in ["cname.test", "odd.test"] {
        ask("resolveCname", name, r.resolve_cname(name), texts).await;
    }
    ask("resolveNs", "ns.test", r.resolve_ns("ns.test"), texts).await;
    ask("resolveSoa", "soa.test", r.resolve_soa("soa.test"), |soa| {
        format!(
            r#"{{"nsname":"{}","hostmaster":"{}","serial":{},"refresh":{},"retry":{},"expire":{},"minttl":{}}}"#,
            soa.nsname, soa.hostmaster, soa.serial, soa.refresh, soa.retry, soa.expire, soa.minttl
        )
    })
    .await;
    ask("resolveNaptr", "naptr.test", r.resolve_naptr("naptr.test"), |found| {
        list(found, |naptr| {
            format!(
                r#"{{"flags":"{}","service":"{}","regexp":"{}","replacement":"{}","order":{},"preference":{}}}"#,
                naptr.flags,
                naptr.service,
                naptr.regexp,
                naptr.replacement,
                naptr.order,
                naptr.preference
            )
        })
    })
    .await;
    for ip in ["192.0.2.1", "192.0.2.9"] {
        let address: IpAddr = ip.parse().unwrap();
        ask("reverse", ip, r.reverse(address), texts).await;
    }
    let refused = resolver.set_servers(["127.0.0.1", "nowhere"]).unwrap_err();
    log(format!("{} {}", refused.code().unwrap(), refused.message()));
    tcp.close();
    udp.close();
}
