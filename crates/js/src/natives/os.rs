//! Facts of the machine and of this process.
//!
//! Where the platform does not know a fact, its function is not bound, and JavaScript has none.

use crate::engine::{Native, Res, Scope, Val};

pub(super) const TABLE: &[(&str, Native)] = &[
    ("tmpdir", tmpdir),
    ("availableParallelism", available_parallelism),
    ("heap", heap),
];

fn tmpdir<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let folder = std::env::temp_dir();
    let text = folder.to_string_lossy();
    let short = text.strip_suffix('/').filter(|short| !short.is_empty());
    scope.string(short.unwrap_or(&text))
}

fn available_parallelism<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    match std::thread::available_parallelism() {
        Ok(threads) => Ok(scope.number(threads.get() as f64)),
        Err(error) => Err(scope.throw_reason(&error.into())),
    }
}

/// Returns the bytes that the engine has allocated, and those of them that its values use.
fn heap<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let (total, used) = scope.inner.heap();
    scope.array(&[scope.number(total as f64), scope.number(used as f64)])
}

#[cfg(not(unix))]
pub(super) const UNIX: &[(&str, Native)] = &[];

#[cfg(unix)]
pub(super) use self::unix::TABLE as UNIX;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::time::Duration;

    use phaseloop::os;
    use phaseloop_node::{Error, host};

    use super::super::number;
    use crate::engine::{Native, Res, Scope, Val};
    use crate::error;

    pub(in super::super) const TABLE: &[(&str, Native)] = &[
        ("memory", memory),
        ("user", user),
        ("hostname", hostname),
        ("homedir", homedir),
        ("systemName", system_name),
        ("osUptime", uptime),
        ("loadAverage", load_average),
        ("systemMemory", system_memory),
        ("userInfo", user_info),
        ("networkInterfaces", network_interfaces),
        ("usage", usage),
        ("random", random),
        ("cpus", cpus),
        ("priority", priority),
        ("setPriority", set_priority),
    ];

    fn known<'js, T>(scope: &Scope<'js>, result: io::Result<T>) -> Res<'js, T> {
        result.map_err(|error| {
            let error = Error::from(error);
            let thrown = error::of_node(scope, &error).and_then(|value| {
                if let Some(text) = error.code().and_then(host::text_of) {
                    value.set("message", &scope.string(text)?)?;
                }
                Ok(scope.throw(value))
            });
            thrown.unwrap_or_else(|fault| fault)
        })
    }

    fn memory<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        Ok(scope.number(known(scope, os::resident_memory())? as f64))
    }

    /// Returns the numbers of the user and of the group.
    fn user<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        let user = known(scope, os::user())?;
        scope.array(&[user.id, user.group].map(|id| scope.number(f64::from(id))))
    }

    fn hostname<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        scope.string(&os::hostname().to_string_lossy())
    }

    fn homedir<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        scope.string(&known(scope, os::home_dir())?.to_string_lossy())
    }

    /// Returns the name, release, version and architecture.
    fn system_name<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        let name = os::system_name();
        let parts = [name.system, name.release, name.version, name.machine];
        let parts: Res<'js, Vec<_>> = parts.iter().map(|part| scope.string(part)).collect();
        scope.array(&parts?)
    }

    fn uptime<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        let uptime = known(scope, os::uptime())?;
        // Node has hundredths.
        Ok(scope.number((uptime.as_secs_f64() * 100.0).floor() / 100.0))
    }

    fn load_average<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        scope.array(&known(scope, os::load_average())?.map(|load| scope.number(load)))
    }

    /// Returns all memory, what is free, what a program may have, and the limit of the process.
    fn system_memory<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        let [total, free] = [
            known(scope, os::total_memory())?,
            known(scope, os::free_memory())?,
        ];
        let limit = os::constrained_memory().unwrap_or(0);
        let bytes = [total, free, known(scope, os::available_memory())?, limit];
        scope.array(&bytes.map(|bytes| scope.number(bytes as f64)))
    }

    /// Returns the numbers of the user and the group, the name, the folder and the shell.
    fn user_info<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        let user = known(scope, os::user())?;
        scope.array(&[
            scope.number(f64::from(user.id)),
            scope.number(f64::from(user.group)),
            scope.string(&user.name.to_string_lossy())?,
            scope.string(&user.home.to_string_lossy())?,
            scope.string(&user.shell.to_string_lossy())?,
        ])
    }

    /// Returns a list for each address: the name, the address, the mask, the hardware's address,
    /// whether it is internal, and the scope of IPv6.
    fn network_interfaces<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        let list = known(scope, os::network_interfaces())?
            .into_iter()
            .map(|it| {
                let mac = it.hardware_address.map(|byte| format!("{byte:02x}"));
                let scope_id = match it.address.is_ipv6() {
                    true => scope.number(f64::from(it.scope_id)),
                    false => scope.undefined(),
                };
                let bits = match it.netmask {
                    std::net::IpAddr::V4(mask) => u32::from(mask).count_ones(),
                    std::net::IpAddr::V6(mask) => u128::from(mask).count_ones(),
                };
                scope.array(&[
                    scope.string(&it.name)?,
                    scope.string(&it.address.to_string())?,
                    scope.string(&it.netmask.to_string())?,
                    scope.string(&mac.join(":"))?,
                    scope.boolean(it.is_internal),
                    scope.number(f64::from(bits)),
                    scope_id,
                ])
            });
        let list: Res<'js, Vec<_>> = list.collect();
        scope.array(&list?)
    }

    /// Returns what the process has used, in the order of `process.resourceUsage()`.
    fn usage<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        let usage = known(scope, os::resource_usage())?;
        let numbers = [
            usage.user_time.as_micros() as u64,
            usage.system_time.as_micros() as u64,
            usage.max_resident / 1024,
            usage.minor_faults,
            usage.major_faults,
            usage.block_reads,
            usage.block_writes,
            usage.voluntary_switches,
            usage.involuntary_switches,
        ];
        scope.array(&numbers.map(|number| scope.number(number as f64)))
    }

    /// Returns random bytes.
    fn random<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
        let mut bytes = vec![0; number(scope, args, 0) as usize];
        known(scope, os::fill_random(&mut bytes))?;
        scope.bytes(&bytes)
    }

    fn cpus<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
        let millis = |time: Duration| scope.number(time.as_millis() as f64);
        let cpus = known(scope, os::cpus())?.into_iter().map(|cpu| {
            let (made, times) = (scope.object()?, scope.object()?);
            for (key, time) in [
                ("user", cpu.times.user),
                ("nice", cpu.times.nice),
                ("sys", cpu.times.system),
                ("idle", cpu.times.idle),
                ("irq", cpu.times.irq),
            ] {
                times.set(key, &millis(time))?;
            }
            made.set("model", &scope.string(&cpu.model)?)?;
            // Node, too, has 0 where the kernel reports no speed.
            made.set("speed", &scope.number(f64::from(cpu.speed.unwrap_or(0))))?;
            made.set("times", &times)?;
            Ok(made)
        });
        let cpus: Res<'js, Vec<_>> = cpus.collect();
        scope.array(&cpus?)
    }

    /// Returns the process of an argument; `None` for 0, this one.
    fn process<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Option<u32> {
        Some(number(scope, args, 0) as u32).filter(|id| *id != 0)
    }

    fn priority<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
        let priority = known(scope, os::priority(process(scope, args)))?;
        Ok(scope.number(f64::from(priority)))
    }

    fn set_priority<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
        let value = number(scope, args, 1) as i32;
        known(scope, os::set_priority(process(scope, args), value))?;
        Ok(scope.undefined())
    }
}
