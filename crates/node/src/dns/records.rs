//! The records of the domain name system.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::wire::Data;

/// A record that can be asked for.
pub(super) trait Record: Clone + Sized + 'static {
    /// The number of the type.
    const KIND: u16;
    /// The name of the call in Node's errors.
    const CALL: &'static str;
    /// Reads the data of a record. `None` if it is not well-formed.
    fn read(data: &mut Data<'_>) -> Option<Self>;
}

impl Record for Ipv4Addr {
    const KIND: u16 = 1;
    const CALL: &'static str = "queryA";
    fn read(data: &mut Data<'_>) -> Option<Self> {
        data.ipv4()
    }
}

impl Record for Ipv6Addr {
    const KIND: u16 = 28;
    const CALL: &'static str = "queryAaaa";
    fn read(data: &mut Data<'_>) -> Option<Self> {
        data.ipv6()
    }
}

/// Defines a record that is one name.
macro_rules! name_record {
    ($Record:ident, $kind:literal, $call:literal) => {
        #[derive(Clone)]
        pub(super) struct $Record(pub(super) String);

        impl Record for $Record {
            const KIND: u16 = $kind;
            const CALL: &'static str = $call;
            fn read(data: &mut Data<'_>) -> Option<Self> {
                data.name().map(Self)
            }
        }
    };
}

name_record!(Cname, 5, "queryCname");
name_record!(Ns, 2, "queryNs");
name_record!(Ptr, 12, "queryPtr");

/// The PTR record of an address; see [`reverse`](super::reverse).
#[derive(Clone)]
pub(super) struct HostByAddr(pub(super) String);

impl Record for HostByAddr {
    const KIND: u16 = 12;
    const CALL: &'static str = "getHostByAddr";
    fn read(data: &mut Data<'_>) -> Option<Self> {
        data.name().map(Self)
    }
}

/// A server that takes mail. JavaScript: `{ exchange, priority }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MxRecord {
    /// The name of the server.
    pub exchange: String,
    /// The server with the lowest number is tried first.
    pub priority: u16,
}

impl Record for MxRecord {
    const KIND: u16 = 15;
    const CALL: &'static str = "queryMx";
    fn read(data: &mut Data<'_>) -> Option<Self> {
        let priority = data.short()?;
        let exchange = data.name()?;
        Some(Self { exchange, priority })
    }
}

/// A server of a service. JavaScript: `{ name, port, priority, weight }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrvRecord {
    /// The name of the server.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// The server with the lowest number is tried first.
    pub priority: u16,
    /// The share among servers of one priority.
    pub weight: u16,
}

impl Record for SrvRecord {
    const KIND: u16 = 33;
    const CALL: &'static str = "querySrv";
    fn read(data: &mut Data<'_>) -> Option<Self> {
        let (priority, weight, port) = (data.short()?, data.short()?, data.short()?);
        let name = data.plain_name()?;
        Some(Self {
            name,
            port,
            priority,
            weight,
        })
    }
}

/// The start of a zone. JavaScript: `{ nsname, hostmaster, serial, refresh, retry, expire, minttl
/// }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoaRecord {
    /// The first name server.
    pub nsname: String,
    /// The address of who is responsible, with a dot in place of the `@`.
    pub hostmaster: String,
    /// The version of the zone.
    pub serial: u32,
    /// Seconds until a secondary server asks again.
    pub refresh: u32,
    /// Seconds until it repeats a question that has failed.
    pub retry: u32,
    /// Seconds after which it no longer answers.
    pub expire: u32,
    /// Seconds for which a missing name may be remembered.
    pub minttl: u32,
}

impl Record for SoaRecord {
    const KIND: u16 = 6;
    const CALL: &'static str = "querySoa";
    fn read(data: &mut Data<'_>) -> Option<Self> {
        Some(Self {
            nsname: data.name()?,
            hostmaster: data.name()?,
            serial: data.long()?,
            refresh: data.long()?,
            retry: data.long()?,
            expire: data.long()?,
            minttl: data.long()?,
        })
    }
}

/// Who may issue certificates. JavaScript: `{ critical, issue: value }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaaRecord {
    /// Whether an authority that does not know the property must not issue.
    pub critical: u8,
    /// The property: `issue`, `issuewild`, `iodef`, ….
    pub property: String,
    /// Its value.
    pub value: String,
}

impl Record for CaaRecord {
    const KIND: u16 = 257;
    const CALL: &'static str = "queryCaa";
    fn read(data: &mut Data<'_>) -> Option<Self> {
        Some(Self {
            critical: data.byte()?,
            property: data.text()?,
            value: data.rest()?,
        })
    }
}

/// A rule that rewrites names. JavaScript: `{ flags, service, regexp, replacement, order,
/// preference }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaptrRecord {
    /// How the rule is applied.
    pub flags: String,
    /// The service.
    pub service: String,
    /// The pattern and its replacement.
    pub regexp: String,
    /// The name that replaces.
    pub replacement: String,
    /// The order of rules.
    pub order: u16,
    /// The order among rules of one order.
    pub preference: u16,
}

impl Record for NaptrRecord {
    const KIND: u16 = 35;
    const CALL: &'static str = "queryNaptr";
    fn read(data: &mut Data<'_>) -> Option<Self> {
        let (order, preference) = (data.short()?, data.short()?);
        Some(Self {
            flags: data.text()?,
            service: data.text()?,
            regexp: data.text()?,
            replacement: data.plain_name()?,
            order,
            preference,
        })
    }
}

/// The texts of one record.
#[derive(Clone)]
pub(super) struct Txt(pub(super) Vec<String>);

impl Record for Txt {
    const KIND: u16 = 16;
    const CALL: &'static str = "queryTxt";
    fn read(data: &mut Data<'_>) -> Option<Self> {
        let mut texts = Vec::new();
        while !data.is_empty() {
            texts.push(data.text()?);
        }
        Some(Self(texts))
    }
}
