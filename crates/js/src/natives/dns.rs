//! Names of hosts and their records.

use std::cell::RefCell;
use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

use phaseloop_node::dns::{self, Resolver};
use phaseloop_node::{Promise, Reason, host};

use super::{arg, number, operations, text};
use crate::engine::{Native, Res, Scope, Val};
use crate::error;

pub(super) const TABLE: &[(&str, Native)] = &[("lookup", lookup), ("resolver", resolver)];

fn list<'js, T>(
    scope: &Scope<'js>,
    values: Vec<T>,
    each: impl Fn(&Scope<'js>, T) -> Res<'js>,
) -> Res<'js> {
    let values = values.into_iter().map(|it| each(scope, it));
    scope.array(&values.collect::<Res<'js, Vec<_>>>()?)
}

fn texts<'js, T: Display>(scope: &Scope<'js>, values: Vec<T>) -> Res<'js> {
    list(scope, values, |scope, it| scope.string(&it.to_string()))
}

/// Looks up all addresses of a name: the name, and the callback.
fn lookup<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let callback = scope.hold(&arg(scope, args, 1));
    dns::lookup_all(&text(scope, args, 0)?, move |found| {
        callback.call(|scope| match found {
            Ok(addresses) => Ok(vec![scope.null(), texts(scope, addresses)?]),
            Err(error) => Ok(vec![error::of_node(scope, &error)?]),
        });
    });
    Ok(scope.undefined())
}

/// A field of a record.
enum Field {
    Number(f64),
    Text(String),
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The numbers that records have.
macro_rules! numbers {
    ($($Number:ty)*) => {
        $(impl From<$Number> for Field {
            fn from(number: $Number) -> Self {
                Self::Number(f64::from(number))
            }
        })*
    };
}

numbers!(u8 u16 u32);

/// Returns the object of a record.
fn record<'js, const N: usize>(scope: &Scope<'js>, fields: [(&str, Field); N]) -> Res<'js> {
    let object = scope.object()?;
    for (name, field) in fields {
        let value = match field {
            Field::Number(number) => scope.number(number),
            Field::Text(text) => scope.string(&text)?,
        };
        object.set(name, &value)?;
    }
    Ok(object)
}

/// Calls the callback of JavaScript where a promise is settled.
fn settle<'s, T: Clone + 'static>(
    scope: &Scope<'s>,
    callback: &Val<'s>,
    promise: &Promise<T>,
    value: impl for<'js> FnOnce(&Scope<'js>, T) -> Res<'js> + 'static,
) {
    let callback = scope.hold(callback);
    host::on_settled(promise, move |result: Result<T, Reason>| {
        callback.call(|scope| match result {
            Ok(found) => Ok(vec![scope.null(), value(scope, found)?]),
            Err(reason) => Ok(vec![error::to_value(scope, &reason)?]),
        });
    });
}

/// Creates a resolver: the time of a try in milliseconds, and the number of tries. Returns the
/// function that calls it.
fn resolver<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let mut resolver = Resolver::new();
    if let Some(tries) = arg(scope, args, 1).as_number() {
        let wait = Duration::from_millis(number(scope, args, 0) as u64);
        resolver = resolver.timeout(wait, tries as u32);
    }
    let resolver = RefCell::new(resolver);
    operations(
        scope,
        "resolver",
        move |scope, operation, args| match operation {
            "getServers" => texts(scope, resolver.borrow().get_servers()),
            "setServers" => {
                let servers = args.iter().map(Val::to_text);
                let servers = servers.collect::<Res<'_, Vec<_>>>()?;
                match resolver.borrow_mut().set_servers(servers) {
                    Ok(()) => Ok(scope.undefined()),
                    Err(error) => Err(scope.throw_reason(&Reason::new(error))),
                }
            }
            _ => {
                let resolver = resolver.borrow().clone();
                ask(scope, &resolver, operation, args)?;
                Ok(scope.undefined())
            }
        },
    )
}

/// Asks for records: the kind, the name, and the callback.
fn ask<'js>(
    scope: &Scope<'js>,
    resolver: &Resolver,
    kind: &str,
    args: &[Val<'js>],
) -> Res<'js, ()> {
    let (name, done) = (text(scope, args, 0)?, arg(scope, args, 1));
    match kind {
        "resolve4" => settle(scope, &done, &resolver.resolve4(&name), texts),
        "resolve6" => settle(scope, &done, &resolver.resolve6(&name), texts),
        "resolveCname" => settle(scope, &done, &resolver.resolve_cname(&name), texts),
        "resolveNs" => settle(scope, &done, &resolver.resolve_ns(&name), texts),
        "resolvePtr" => settle(scope, &done, &resolver.resolve_ptr(&name), texts),
        "resolveTxt" => settle(
            scope,
            &done,
            &resolver.resolve_txt(&name),
            |scope, found| list(scope, found, texts),
        ),
        "resolveMx" => settle(scope, &done, &resolver.resolve_mx(&name), |scope, found| {
            list(scope, found, |scope, it| {
                let fields = [
                    ("exchange", it.exchange.into()),
                    ("priority", it.priority.into()),
                    ("type", "MX".to_owned().into()),
                ];
                record(scope, fields)
            })
        }),
        "resolveSrv" => settle(
            scope,
            &done,
            &resolver.resolve_srv(&name),
            |scope, found| {
                list(scope, found, |scope, it| {
                    let fields = [
                        ("name", it.name.into()),
                        ("port", it.port.into()),
                        ("priority", it.priority.into()),
                        ("weight", it.weight.into()),
                        ("type", "SRV".to_owned().into()),
                    ];
                    record(scope, fields)
                })
            },
        ),
        "resolveCaa" => settle(
            scope,
            &done,
            &resolver.resolve_caa(&name),
            |scope, found| {
                list(scope, found, |scope, it| {
                    let property = it.property;
                    let fields = [
                        ("critical", it.critical.into()),
                        (property.as_str(), it.value.into()),
                        ("type", "CAA".to_owned().into()),
                    ];
                    record(scope, fields)
                })
            },
        ),
        "resolveNaptr" => settle(
            scope,
            &done,
            &resolver.resolve_naptr(&name),
            |scope, found| {
                list(scope, found, |scope, it| {
                    let fields = [
                        ("flags", it.flags.into()),
                        ("service", it.service.into()),
                        ("regexp", it.regexp.into()),
                        ("replacement", it.replacement.into()),
                        ("order", it.order.into()),
                        ("preference", it.preference.into()),
                    ];
                    record(scope, fields)
                })
            },
        ),
        "resolveSoa" => settle(scope, &done, &resolver.resolve_soa(&name), |scope, it| {
            let fields = [
                ("nsname", it.nsname.into()),
                ("hostmaster", it.hostmaster.into()),
                ("serial", it.serial.into()),
                ("refresh", it.refresh.into()),
                ("retry", it.retry.into()),
                ("expire", it.expire.into()),
                ("minttl", it.minttl.into()),
            ];
            record(scope, fields)
        }),
        _ => {
            // JavaScript has checked that it is an address.
            if let Ok(ip) = name.parse::<IpAddr>() {
                settle(scope, &done, &resolver.reverse(ip), texts);
            }
        }
    }
    Ok(())
}
