//! Information about the OS, compared with the output of its own commands; R334–R336.
#![cfg(all(target_os = "linux", feature = "os"))]

use crate::util::child::in_child;
use crate::util::polls::poll_once;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use phaseloop::{Builder, block_on, os, pool};
use tokio_test::assert_pending;

/// What a command prints, without the end of the line.
fn says(program: &str, args: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    output.stdout.trim_ascii_end().to_vec()
}

fn check(child: Option<Child>) {
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
    }
}

#[test]
fn libuv_platform_output() {
    let uptime = os::uptime().unwrap();
    assert!(uptime > Duration::ZERO && os::uptime().unwrap() >= uptime);
    let cpus = os::cpus().unwrap();
    let online = says("getconf", &["_NPROCESSORS_ONLN"]);
    assert_eq!(cpus.len().to_string().as_bytes(), online);
    for cpu in &cpus {
        assert!(cpu.times.idle + cpu.times.user + cpu.times.system > Duration::ZERO);
        assert!(cpu.speed.is_none_or(|speed| speed > 0));
    }
    let usage = os::resource_usage().unwrap();
    assert!(usage.user_time + usage.system_time > Duration::ZERO);
    assert!(usage.minor_faults > 0);
}

#[test]
fn libuv_get_loadavg() {
    for load in os::load_average().unwrap() {
        assert!(load >= 0.0 && load.is_finite());
    }
}

#[test]
fn libuv_get_memory() {
    let (total, free) = (os::total_memory().unwrap(), os::free_memory().unwrap());
    assert!(0 < free && free <= total);
    let available = os::available_memory().unwrap();
    assert!(available <= total);
    if let Some(most) = os::constrained_memory() {
        assert!(available <= most);
    }
    let before = os::resident_memory().unwrap();
    let touched = std::hint::black_box(vec![1_u8; 64 << 20]);
    let grown = os::resident_memory().unwrap();
    assert!(grown >= before + (32 << 20), "{before} to {grown}");
    assert!(os::resource_usage().unwrap().max_resident >= grown - (8 << 20));
    drop(touched);
}

#[test]
fn a_thread_has_used_no_more_than_its_process() {
    std::thread::spawn(|| {
        let thread = os::thread_resource_usage().unwrap();
        let process = os::resource_usage().unwrap();
        assert!(thread.voluntary_switches <= process.voluntary_switches);
        assert!(thread.minor_faults <= process.minor_faults);
    })
    .join()
    .unwrap();
}

#[test]
fn libuv_gethostname_and_uname() {
    assert_eq!(os::hostname().as_bytes(), says("uname", &["-n"]));
    let name = os::system_name();
    assert_eq!(name.system.as_bytes(), says("uname", &["-s"]));
    assert_eq!(name.release.as_bytes(), says("uname", &["-r"]));
    assert_eq!(name.version.as_bytes(), says("uname", &["-v"]));
    assert_eq!(name.machine.as_bytes(), says("uname", &["-m"]));
}

#[test]
fn libuv_get_passwd_and_get_passwd2() {
    let id = says("id", &["-u"]);
    let user = os::user().unwrap();
    assert_eq!(user.id.to_string().as_bytes(), id);
    assert_eq!(user.name.as_bytes(), says("id", &["-un"]));
    assert_eq!(user.group.to_string().as_bytes(), says("id", &["-g"]));
    assert!(user.home.is_absolute());
    let root = os::user_by_id(0).unwrap();
    assert_eq!(
        (root.name.as_bytes(), root.id, root.group),
        (&b"root"[..], 0, 0)
    );
    let line = String::from_utf8(says("getent", &["passwd", "0"])).unwrap();
    let fields: Vec<_> = line.split(':').map(PathBuf::from).collect();
    assert_eq!(
        [root.home, root.shell],
        [fields[5].clone(), fields[6].clone()]
    );
    let error = os::user_by_id(4_000_000_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), "there is no user 4000000000");
}

#[test]
fn libuv_get_group() {
    let group = os::group_by_id(0).unwrap();
    assert_eq!((group.name.as_bytes(), group.id), (&b"root"[..], 0));
    // Whichever group has members, if any.
    let groups = String::from_utf8(says("getent", &["group"])).unwrap();
    for line in groups.lines() {
        let fields: Vec<_> = line.split(':').collect();
        let group = os::group_by_id(fields[2].parse().unwrap()).unwrap();
        let members: Vec<_> = fields[3]
            .split(',')
            .filter(|name| !name.is_empty())
            .collect();
        assert_eq!(group.members, members, "{line}");
    }
    let error = os::group_by_id(4_000_000_000).unwrap_err();
    assert_eq!(error.to_string(), "there is no group 4000000000");
}

/// In processes of their own, for their environment. R334 and R335 are about buffers; a path has
/// its own size here.
#[test]
fn r334_r335_libuv_homedir() {
    let test = "r334_r335_libuv_homedir";
    for (name, variable) in [("set", "HOME=/some/where"), ("empty", "HOME=")] {
        let wrapper = ["env", variable, &format!("PHASELOOP_HOME={name}")];
        check(in_child(&wrapper, test, home_is_as_expected));
        if std::env::var_os("PHASELOOP_HOME").is_some() {
            return;
        }
    }
    let wrapper = ["env", "-u", "HOME", "PHASELOOP_HOME=missing"];
    check(in_child(&wrapper, test, home_is_as_expected));
}

fn home_is_as_expected() {
    let home = os::home_dir().unwrap();
    match std::env::var("PHASELOOP_HOME").unwrap().as_str() {
        "set" => assert_eq!(home, PathBuf::from("/some/where")),
        _ => assert_eq!(home, os::user().unwrap().home),
    }
}

/// In a process of its own, which is less important afterwards.
#[test]
fn libuv_process_priority() {
    let test = "libuv_process_priority";
    check(in_child(&[], test, || {
        let before = os::priority(None).unwrap();
        let lower = (before + 3).min(19);
        os::set_priority(None, lower).unwrap();
        assert_eq!(os::priority(None).unwrap(), lower);
        let inherited = std::thread::spawn(|| os::priority(None).unwrap());
        assert_eq!(inherited.join().unwrap(), lower);
        // The first thread of the process; this is another.
        let process = Some(std::process::id());
        os::set_priority(process, 19).unwrap();
        assert_eq!(os::priority(process).unwrap(), 19);
        for beyond in [-21, 20, i32::MIN, i32::MAX] {
            let error = os::set_priority(None, beyond).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        for invalid in [0, u32::MAX] {
            let error = os::priority(Some(invalid)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        // An id that no process has: above the limit of the kernel.
        let error = os::set_priority(Some(i32::MAX as u32), 19).unwrap_err();
        assert_eq!(
            error.raw_os_error(),
            Some(rustix::io::Errno::SRCH.raw_os_error())
        );
        assert_eq!(os::priority(None).unwrap(), lower, "nothing has changed");
    }));
}

#[test]
fn the_addresses_of_the_interfaces_are_ours() {
    let interfaces = os::network_interfaces().unwrap();
    for interface in &interfaces {
        assert!(!interface.name.is_empty());
        assert_eq!(interface.address.is_ipv4(), interface.netmask.is_ipv4());
        let hardware = format!("/sys/class/net/{}/address", interface.name);
        if let Ok(expected) = std::fs::read_to_string(hardware) {
            let bytes = interface.hardware_address.map(|byte| format!("{byte:02x}"));
            assert_eq!(bytes.join(":"), expected.trim());
        }
        // Only an address of this machine can be bound.
        if let IpAddr::V4(address) = interface.address {
            UdpSocket::bind((address, 0)).unwrap();
        }
    }
    let local = interfaces
        .iter()
        .find(|one| one.address == IpAddr::V4(Ipv4Addr::LOCALHOST));
    let local = local.expect("the loopback interface is up");
    assert!(local.is_internal);
    assert_eq!(local.netmask, IpAddr::V4(Ipv4Addr::new(255, 0, 0, 0)));
    assert_eq!(local.scope_id, 0);
}

#[test]
fn libuv_random_sync() {
    let mut one = [0; 4096];
    os::fill_random(&mut one).unwrap();
    let mut other = [0; 4096];
    os::fill_random(&mut other).unwrap();
    assert_ne!(one, other);
    // To its end, which all zeros would not be.
    assert_ne!(one[4080..], [0; 16]);
    os::fill_random(&mut []).unwrap();
}

#[test]
fn r336_libuv_random_async() {
    block_on(async {
        let bytes = os::random(100_000).await.unwrap();
        assert_eq!(bytes.len(), 100_000);
        assert!(bytes.rchunks(16).all(|chunk| chunk != [0; 16]));
        assert_eq!(os::random(0).await.unwrap(), [0; 0]);
        let error = os::random(1 << 31).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

/// The only thread is busy, so the job is still in the queue when its future is dropped.
#[test]
fn libuv_threadpool_cancel_random() {
    let pool = pool::PoolBuilder::new().threads(1).build();
    let event_loop = Builder::new().pool(pool.clone()).build().unwrap();
    event_loop.block_on(async {
        let (start, started) = std::sync::mpsc::channel();
        let (release, wait) = std::sync::mpsc::channel();
        let busy = phaseloop::spawn_blocking(move || {
            start.send(()).unwrap();
            wait.recv().unwrap();
        });
        started.recv().unwrap();
        let mut random = Box::pin(os::random(64));
        assert_pending!(poll_once(&mut random).await);
        assert_eq!(pool.stats().queued, 1);
        drop(random);
        release.send(()).unwrap();
        busy.await.unwrap();
        // Passed over: this one comes next.
        assert_eq!(phaseloop::spawn_blocking(|| 7).await.unwrap(), 7);
        assert_eq!(pool.stats().queued, 0);
    });
}
