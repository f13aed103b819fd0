//! Which addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is anything else than a public one: loopback, private, link-local, shared, documentation,
/// multicast, reserved, or an IPv6 form that carries such an IPv4 address.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0 | 10 | 127, _, _) => true,
        (100, 64..=127, _) => true,
        (169, 254, _) => true,
        (172, 16..=31, _) => true,
        (192, 0, 0 | 2) | (192, 88, 99) | (192, 168, _) => true,
        (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => true,
        _ => a >= 224,
    }
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_private_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Unspecified, loopback, mapped and compatible IPv4: the last two are never needed, so all are refused.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] => true,
        // Translated IPv4, well-known and local prefix.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x64, 0xff9b, 1, ..] => true,
        // Discard only, documentation, benchmarking, Teredo and other protocol assignments.
        [0x100, 0, 0, 0, ..] | [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, ..] => true,
        // 6to4.
        [0x2002, high, low, ..] => embedded(high, low),
        // Everything outside global unicast: unique local, link-local, site-local, multicast, reserved.
        [first, ..] => !(0x2000..=0x3fff).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::is_private;

    #[test]
    fn attack_43_44_only_public_addresses_are_public() {
        let private = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.8.8.8",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:8.8.8.8",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::8.8.8.8",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "100::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "5f00::1",
        ];
        let public = ["1.1.1.1", "8.8.8.8", "172.32.0.1", "192.0.1.1", "2606:4700::1111", "64:ff9b::8.8.8.8"];
        for address in private {
            assert!(address.parse().is_ok_and(is_private), "{address} counts as public");
        }
        for address in public {
            assert!(address.parse().is_ok_and(|address| !is_private(address)), "{address} counts as private");
        }
    }
}
