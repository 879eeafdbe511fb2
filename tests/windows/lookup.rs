//! Reverse lookups.

use phaseloop::net::lookup_addr;

use crate::run;

#[test]
fn an_address_has_a_name_or_is_its_own() {
    run(async {
        let (host, service) = lookup_addr(([127, 0, 0, 1], 80).into()).await.unwrap();
        assert!(!host.is_empty(), "{host:?}");
        assert!(service == "http" || service == "80", "{service:?}");
        let (_, service) = lookup_addr("[::1]:65432".parse().unwrap()).await.unwrap();
        assert_eq!(service, "65432", "a port without a service");
    });
}
