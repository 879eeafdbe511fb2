//! The fields of a certificate, read from its DER.

use std::fmt::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};

use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};

use super::der::{Element, element, elements};

/// A certificate of a peer. JavaScript: what `socket.getPeerCertificate()` returns.
///
/// The fields are read when they are asked for. A field that the certificate lacks, or that is not
/// well-formed, is empty or `None`.
///
/// # Examples
///
/// ```no_run
/// use phaseloop_node::{Exit, Emitter, net::CONNECT, run, tls};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let socket = tls::connect(("example.org", 443));
///         socket.on_this(CONNECT, |socket, ()| {
///             let session = tls::session(socket).unwrap();
///             let certificate = session.peer_certificate().unwrap();
///             println!("{:?} until {:?}", certificate.subject(), certificate.valid_to());
///             socket.end(());
///         });
///     })
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate(Vec<u8>);

impl Certificate {
    pub(super) fn new(der: &[u8]) -> Self {
        Self(der.to_vec())
    }

    /// Returns the certificate in DER. JavaScript: `certificate.raw`.
    #[must_use]
    pub fn raw(&self) -> &[u8] {
        &self.0
    }

    /// Returns whom the certificate is for: pairs such as `("CN", "localhost")`. An attribute
    /// without a short name has its number. JavaScript: `certificate.subject`.
    #[must_use]
    pub fn subject(&self) -> Vec<(String, String)> {
        self.fields()
            .map_or(Vec::new(), |fields| name(fields.subject))
    }

    /// Returns who has issued the certificate, as pairs. JavaScript: `certificate.issuer`.
    #[must_use]
    pub fn issuer(&self) -> Vec<(String, String)> {
        self.fields()
            .map_or(Vec::new(), |fields| name(fields.issuer))
    }

    /// Returns the names of the host: `DNS:localhost, IP Address:127.0.0.1`. A name that could be
    /// mistaken for several ones is in quotes. JavaScript: `certificate.subjectaltname`.
    #[must_use]
    pub fn subject_alt_name(&self) -> Option<String> {
        let names = self.extension(&[0x55, 0x1d, 0x11])?;
        let (_, names) = element(&mut { names })?;
        let names: Vec<_> = elements(names).map(alternative).collect();
        Some(names.join(", "))
    }

    /// Returns whether the certificate is that of an authority. JavaScript: `certificate.ca`.
    #[must_use]
    pub fn ca(&self) -> bool {
        let constraints = self.extension(&[0x55, 0x1d, 0x13]);
        let constraints = constraints.and_then(|mut found| element(&mut found));
        let first = constraints.and_then(|(_, found)| elements(found).next());
        first.is_some_and(|(tag, content)| tag == 1 && content.first().is_some_and(|&is| is != 0))
    }

    /// Returns the numbers of the uses that the certificate is limited to. JavaScript:
    /// `certificate.ext_key_usage`.
    #[must_use]
    pub fn ext_key_usage(&self) -> Option<Vec<String>> {
        let uses = self.extension(&[0x55, 0x1d, 0x25])?;
        let (_, uses) = element(&mut { uses })?;
        Some(elements(uses).map(|(_, number)| dotted(number)).collect())
    }

    /// Returns since when the certificate is valid: `Nov 17 07:17:21 2026 GMT`. JavaScript:
    /// `certificate.valid_from`.
    #[must_use]
    pub fn valid_from(&self) -> Option<String> {
        date(elements(self.fields()?.validity).next()?)
    }

    /// Returns until when the certificate is valid. JavaScript: `certificate.valid_to`.
    #[must_use]
    pub fn valid_to(&self) -> Option<String> {
        date(elements(self.fields()?.validity).nth(1)?)
    }

    /// Returns the serial number in hexadecimal digits. JavaScript: `certificate.serialNumber`.
    #[must_use]
    pub fn serial_number(&self) -> Option<String> {
        let digits = self.fields()?.serial;
        let digits = match digits {
            [0, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };
        Some(hexadecimal(digits, ""))
    }

    /// Returns the SHA-1 sum of the certificate: `AB:CD:…`. JavaScript: `certificate.fingerprint`.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.sum(&SHA1_FOR_LEGACY_USE_ONLY)
    }

    /// Returns the SHA-256 sum of the certificate: `AB:CD:…`. JavaScript:
    /// `certificate.fingerprint256`.
    #[must_use]
    pub fn fingerprint256(&self) -> String {
        self.sum(&SHA256)
    }

    /// Returns the SHA-512 sum of the certificate: `AB:CD:…`. JavaScript:
    /// `certificate.fingerprint512`.
    #[must_use]
    pub fn fingerprint512(&self) -> String {
        self.sum(&SHA512)
    }

    fn sum(&self, algorithm: &'static Algorithm) -> String {
        hexadecimal(digest(algorithm, &self.0).as_ref(), ":")
    }

    fn fields(&self) -> Option<Fields<'_>> {
        Fields::of(&self.0)
    }

    /// Returns the content of an extension.
    fn extension(&self, number: &[u8]) -> Option<&[u8]> {
        const EXTENSIONS: u8 = 0xa3;
        let (_, list) = elements(self.fields()?.rest).find(|(tag, _)| *tag == EXTENSIONS)?;
        let (_, list) = element(&mut { list })?;
        let (_, found) = elements(list).find(|(_, extension)| {
            let known = elements(extension).next();
            known.is_some_and(|(_, known)| known == number)
        })?;
        elements(found).last().map(|(_, content)| content)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificate")
            .field(&self.fingerprint256())
            .finish()
    }
}

/// The fields of a certificate, each as its content.
pub(super) struct Fields<'a> {
    serial: &'a [u8],
    pub(super) issuer: &'a [u8],
    validity: &'a [u8],
    pub(super) subject: &'a [u8],
    /// The key and the extensions.
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(mut certificate: &'a [u8]) -> Option<Self> {
        const VERSION: u8 = 0xa0;
        let (_, mut outer) = element(&mut certificate)?;
        let (_, mut fields) = element(&mut outer)?;
        let (first, mut serial) = element(&mut fields)?;
        if first == VERSION {
            // The serial number is the first field where the version is left out.
            (_, serial) = element(&mut fields)?;
        }
        let _algorithm = element(&mut fields)?;
        let (_, issuer) = element(&mut fields)?;
        let (_, validity) = element(&mut fields)?;
        let (_, subject) = element(&mut fields)?;
        Some(Self {
            serial,
            issuer,
            validity,
            subject,
            rest: fields,
        })
    }
}

/// The short names of the attributes of a name.
const ATTRIBUTES: [(&str, &str); 19] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.46", "dnQualifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// Returns the attributes of a name.
fn name(encoded: &[u8]) -> Vec<(String, String)> {
    let sets = elements(encoded).flat_map(|(_, set)| elements(set));
    let attribute = |(_, pair)| {
        let mut pair = elements(pair);
        let (number, value) = (dotted(pair.next()?.1), text(pair.next()?));
        let known = ATTRIBUTES.iter().find(|(known, _)| *known == number);
        Some((known.map_or(number, |(_, short)| (*short).into()), value))
    };
    sets.filter_map(attribute).collect()
}

/// Returns a text of any of the types that names have.
fn text((tag, content): Element<'_>) -> String {
    const LATIN: u8 = 0x14;
    const UCS4: u8 = 0x1c;
    const UCS2: u8 = 0x1e;
    match tag {
        LATIN => content.iter().copied().map(char::from).collect(),
        UCS2 => {
            let units: Vec<_> = content
                .chunks_exact(2)
                .map(|two| [two[0], two[1]])
                .collect();
            let units: Vec<_> = units.into_iter().map(u16::from_be_bytes).collect();
            String::from_utf16_lossy(&units)
        }
        UCS4 => {
            let four = content.chunks_exact(4);
            let number = |four: &[u8]| four.iter().fold(0, |all, &byte| all << 8 | u32::from(byte));
            let character = |number| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
            four.map(number).map(character).collect()
        }
        _ => String::from_utf8_lossy(content).into_owned(),
    }
}

/// Returns one of the names of a host, as Node writes it.
fn alternative((tag, content): Element<'_>) -> String {
    match tag {
        0x81 => format!("email:{}", quoted(content)),
        0x82 => format!("DNS:{}", quoted(content)),
        0x86 => format!("URI:{}", quoted(content)),
        0x87 => format!("IP Address:{}", address(content)),
        0x88 => format!("Registered ID:{}", dotted(content)),
        0xa4 => {
            let pairs = element(&mut { content }).map_or(Vec::new(), |(_, content)| name(content));
            let pairs = pairs.iter().rev();
            let pairs: Vec<_> = pairs
                .map(|(name, value)| format!("{name}={}", escaped(value)))
                .collect();
            format!("DirName:{}", quoted(pairs.join(",").as_bytes()))
        }
        0xa0 => "othername:<unsupported>".into(),
        0xa3 => "X400Name:<unsupported>".into(),
        0xa5 => "EdiPartyName:<unsupported>".into(),
        _ => String::new(),
    }
}

/// Returns a value of a name whose signs do not separate values.
fn escaped(value: &str) -> String {
    let mut text = String::new();
    for character in value.chars() {
        if matches!(character, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

/// Returns a name, in quotes if it has signs that separate names.
fn quoted(name: &[u8]) -> String {
    let is_plain =
        |&byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b',' | b'\'');
    if name.iter().all(is_plain) {
        return String::from_utf8_lossy(name).into_owned();
    }
    let mut text = String::from('"');
    for &byte in name {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' if byte != b',' => text.push(char::from(byte)),
            _ => drop(write!(text, "\\u{byte:04x}")),
        }
    }
    text.push('"');
    text
}

fn address(octets: &[u8]) -> String {
    if let Ok(four) = <[u8; 4]>::try_from(octets) {
        return Ipv4Addr::from(four).to_string();
    }
    match <[u8; 16]>::try_from(octets) {
        Ok(sixteen) => {
            let parts = Ipv6Addr::from(sixteen).segments();
            parts.map(|part| format!("{part:X}")).join(":")
        }
        Err(_) => "<invalid>".into(),
    }
}

/// Returns the number of an object: `2.5.4.3`.
fn dotted(number: &[u8]) -> String {
    let (mut parts, mut part) = (Vec::new(), 0_u64);
    for byte in number {
        part = part.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            parts.push(std::mem::take(&mut part));
        }
    }
    let Some((&first, rest)) = parts.split_first() else {
        return String::new();
    };
    let root = (first / 40).min(2);
    let mut text = format!("{root}.{}", first - root * 40);
    for part in rest {
        let _ = write!(text, ".{part}");
    }
    text
}

/// Returns a time in the words of OpenSSL.
fn date((tag, content): Element<'_>) -> Option<String> {
    const SHORT: u8 = 0x17;
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let digits = content.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let pairs: Vec<_> = digits
        .chunks_exact(2)
        .map(|two| u32::from(two[0] - b'0') * 10 + u32::from(two[1] - b'0'))
        .collect();
    let (year, rest) = match (tag, &pairs[..]) {
        (SHORT, [year, rest @ ..]) if *year < 50 => (2000 + year, rest),
        (SHORT, [year, rest @ ..]) => (1900 + year, rest),
        (_, [century, year, rest @ ..]) => (century * 100 + year, rest),
        _ => return None,
    };
    let &[month, day, hour, minute, second] = rest else {
        return None;
    };
    let month = MONTHS.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    Some(format!(
        "{month} {day:2} {hour:02}:{minute:02}:{second:02} {year} GMT"
    ))
}

fn hexadecimal(bytes: &[u8], between: &str) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    digits.join(between)
}

#[cfg(test)]
mod tests {
    use super::{Certificate, address, date, dotted, quoted};
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    const SERVER: &[u8] = include_bytes!("../../../../tests/util/certificates/server.pem");

    /// Reads all fields.
    fn read(certificate: &Certificate) -> String {
        format!(
            "{:?} {:?} {:?} {} {:?} {:?} {:?} {:?}",
            certificate.subject(),
            certificate.issuer(),
            certificate.subject_alt_name(),
            certificate.ca(),
            certificate.ext_key_usage(),
            certificate.valid_from(),
            certificate.valid_to(),
            certificate.serial_number(),
        )
    }

    #[test]
    fn n161_cut_and_changed_certificates_are_read_without_a_panic() {
        let server = CertificateDer::from_pem_slice(SERVER).unwrap();
        let whole = read(&Certificate::new(&server));
        let mut different = 0;
        for at in 0..server.len() {
            let cut = read(&Certificate::new(&server[..at]));
            assert_ne!(cut, whole);
            for flip in [0x01, 0x80, 0xff] {
                let mut changed = server.to_vec();
                changed[at] ^= flip;
                different += usize::from(read(&Certificate::new(&changed)) != whole);
            }
        }
        assert!(different > 100, "{different}");
    }

    #[test]
    fn n161_odd_values_are_written_as_openssl_writes_them() {
        assert_eq!(
            dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d]),
            "1.2.840.113549"
        );
        assert_eq!(dotted(&[0x88, 0x37, 3]), "2.999.3");
        assert_eq!(dotted(&[]), "");
        assert_eq!(
            date((0x17, b"500101000000Z")).unwrap(),
            "Jan  1 00:00:00 1950 GMT"
        );
        assert_eq!(
            date((0x18, b"20491231235959Z")).unwrap(),
            "Dec 31 23:59:59 2049 GMT"
        );
        assert_eq!(date((0x17, b"501301000000Z")), None);
        assert_eq!(date((0x17, b"5013\xff1000000Z")), None);
        assert_eq!(
            quoted(b"a.test, DNS:b.test"),
            "\"a.test\\u002c DNS:b.test\""
        );
        assert_eq!(quoted(b"a\"\0"), "\"a\\\"\\u0000\"");
        assert_eq!(address(&[0; 16]), "0:0:0:0:0:0:0:0");
        assert_eq!(address(&[0; 5]), "<invalid>");
    }
}
