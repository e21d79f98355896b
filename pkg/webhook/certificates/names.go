package certificates

import (
	"net"
	"slices"
)

// Names returns the host names and addresses that a certificate can have, without
// duplicates. Host names come first, because the first name becomes the common name.
// Addresses that mean all addresses cannot be called and are left out.
//
// Specification: the class WebhookServer, build_certificate.
func Names(candidates ...string) []string {
	var hosts, addresses []string
	for _, name := range candidates {
		ip := net.ParseIP(name)
		switch {
		case name == "", slices.Contains(hosts, name), ip != nil && ip.IsUnspecified():
		case ip == nil:
			hosts = append(hosts, name)
		case !slices.Contains(addresses, ip.String()):
			addresses = append(addresses, ip.String())
		}
	}
	return append(hosts, addresses...)
}
