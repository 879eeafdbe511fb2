//! The options that an attribute knows: which attribute takes it, an example of it, and the feature
//! of `phaseloop` that it needs.

use crate::Kind;

/// An option of an attribute.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    /// The attribute that takes it, or both.
    only: Option<Kind>,
    /// How it is written.
    pub(crate) example: &'static str,
    /// The macro of `phaseloop` that calls of its method go through.
    pub(crate) gate: Option<&'static str>,
}

impl Known {
    /// Returns whether `=` and a value follow the name.
    pub(crate) fn has_value(&self) -> bool {
        self.example.contains('=')
    }

    /// Returns whether `kind` takes it.
    pub(crate) fn is_for(&self, kind: Kind) -> bool {
        self.only.is_none_or(|only| only == kind)
    }
}

const TEST_UTIL: Option<&str> = Some("__with_test_util");
const PROBE: Option<&str> = Some("__with_probe");

/// The options in the order in which errors list them. Those of `Builder` are its methods; the test
/// `options` compares them with the public API.
pub(crate) const KNOWN: &[Known] = &[
    of(Kind::Main, "run", "run"),
    of(Kind::Main, "pin", "pin"),
    of(Kind::Test, "timeout", "timeout = \"5s\""),
    of(Kind::Test, "seeds", "seeds = 200"),
    option("loops", "loops = 4", None),
    option("crate", "crate = ::phaseloop", None),
    option(
        "lane_budget",
        "lane_budget = 10_000.try_into().unwrap()",
        None,
    ),
    option("pool", "pool = phaseloop::pool::Pool::global()", None),
    option(
        "unhandled_panic",
        "unhandled_panic = phaseloop::UnhandledPanic::Ignore",
        None,
    ),
    option("start_paused", "start_paused = true", TEST_UTIL),
    option("auto_advance", "auto_advance = false", TEST_UTIL),
    option(
        "outside_timeout",
        "outside_timeout = std::time::Duration::from_secs(1)",
        TEST_UTIL,
    ),
    option(
        "network",
        "network = phaseloop::sim::Settings::default()",
        TEST_UTIL,
    ),
    option("shuffle", "shuffle = chooser", TEST_UTIL),
    option("observer", "observer = observer", None),
    option("record", "record = recorder", PROBE),
    option("watchdog", "watchdog = watchdog", PROBE),
    option("ignore_environment", "ignore_environment", PROBE),
    option("tracing", "tracing", Some("__with_tracing")),
    option(
        "report_on",
        "report_on = phaseloop::signal::SignalKind::USR1",
        Some("__with_signal"),
    ),
    option("tokio", "tokio", Some("__with_tokio_rt")),
];

const fn option(name: &'static str, example: &'static str, gate: Option<&'static str>) -> Known {
    Known {
        name,
        only: None,
        example,
        gate,
    }
}

const fn of(kind: Kind, name: &'static str, example: &'static str) -> Known {
    Known {
        name,
        only: Some(kind),
        example,
        gate: None,
    }
}

/// Returns the option with a name.
pub(crate) fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Returns the names of the options of `kind`, for an error.
pub(crate) fn list(kind: Kind) -> String {
    let names = KNOWN.iter().filter(|known| known.is_for(kind));
    let names: Vec<_> = names.map(|known| format!("`{}`", known.name)).collect();
    format!(
        "the options of {} are {}",
        kind.attribute(),
        names.join(", ")
    )
}
