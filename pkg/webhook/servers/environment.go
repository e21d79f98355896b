package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kopf-go/kopf/pkg/settings"
)

// FromEnvironment sets how the API servers reach the operator, as the variables of its pods say, which the command
// manifests gives them. It reports whether they do: without WEBHOOK_SERVICE, as on the machine of a developer, it changes
// nothing.
//
//   - WEBHOOK_SERVICE is the namespace and the name of the Service: stores/shops-webhook. Without files with a certificate, the
//     replicas share one in a Secret of the same name.
//   - WEBHOOK_ADDRESS is the address to listen at: :9443.
//   - WEBHOOK_CERT_DIR is a folder with tls.crt and tls.key, and with ca.crt if the operator writes the configurations.
//   - WEBHOOK_MANAGED is false if something else writes the configurations. Otherwise, they get the name managed, unless
//     there is one in the settings.
//
// Call it before the operator is made:
//
//	kopf.Main(func(o *kopf.Options) {
//		found, err := servers.FromEnvironment(&o.Settings.Admission, "shops.example.com")
//		...
//	})
func FromEnvironment(admission *settings.Admission, managed string) (found bool, err error) {
	service := os.Getenv("WEBHOOK_SERVICE")
	if service == "" {
		return false, nil
	}
	namespace, name, complete := strings.Cut(service, "/")
	if !complete || namespace == "" || name == "" {
		return false, fmt.Errorf("the environment variable WEBHOOK_SERVICE is %q, and must be a namespace and a name, such as stores/shops-webhook", service)
	}
	host, number, _ := strings.Cut(os.Getenv("WEBHOOK_ADDRESS"), ":")
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return false, fmt.Errorf("the environment variable WEBHOOK_ADDRESS is %q, and must be an address to listen at, such as :9443", os.Getenv("WEBHOOK_ADDRESS"))
	}
	server := Server{
		Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name, Port: new(int32(port))},
		Addr:    host, Port: int(port),
	}
	isManaged := os.Getenv("WEBHOOK_MANAGED") != "false"
	if dir := os.Getenv("WEBHOOK_CERT_DIR"); dir != "" {
		server.CertFile, server.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		if isManaged {
			server.CAFile = filepath.Join(dir, "ca.crt")
		}
	} else {
		server.Secret = service
	}
	admission.Server = server
	switch {
	case !isManaged:
		admission.Managed = ""
	case admission.Managed == "":
		admission.Managed = managed
	}
	return true, nil
}
