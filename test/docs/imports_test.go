package docs

// known are the packages that listings use without an import, by the names under which
// they do.
var known = map[string]string{
	"atomic":   "sync/atomic",
	"context":  "context",
	"errors":   "errors",
	"exec":     "os/exec",
	"fnv":      "hash/fnv",
	"fmt":      "fmt",
	"http":     "net/http",
	"json":     "encoding/json",
	"maps":     "maps",
	"net":      "net",
	"os":       "os",
	"rand":     "math/rand/v2",
	"slices":   "slices",
	"slog":     "log/slog",
	"strings":  "strings",
	"sync":     "sync",
	"synctest": "testing/synctest",
	"testing":  "testing",
	"time":     "time",
	"tls":      "crypto/tls",
	"logr":     "github.com/go-logr/logr",
	"resource": "k8s.io/apimachinery/pkg/api/resource",
	"klog":     "k8s.io/klog/v2",
	"rest":     "k8s.io/client-go/rest",
	"runtime":  "k8s.io/apimachinery/pkg/runtime",
	"scheme":   "k8s.io/client-go/kubernetes/scheme",
	"types":    "k8s.io/apimachinery/pkg/types",

	"admissionregistrationv1": "k8s.io/api/admissionregistration/v1",
	"apierrors":               "k8s.io/apimachinery/pkg/api/errors",
	"schema":                  "k8s.io/apimachinery/pkg/runtime/schema",
	"appsv1":                  "k8s.io/api/apps/v1",
	"batchv1":                 "k8s.io/api/batch/v1",
	"corev1":                  "k8s.io/api/core/v1",
	"metav1":                  "k8s.io/apimachinery/pkg/apis/meta/v1",
	"unstructured":            "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured",

	"client":         "sigs.k8s.io/controller-runtime/pkg/client",
	"controllerutil": "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil",
	"ctrl":           "sigs.k8s.io/controller-runtime",
	"log":            "sigs.k8s.io/controller-runtime/pkg/log",
	"manager":        "sigs.k8s.io/controller-runtime/pkg/manager",

	"backoff":    module + "pkg/backoff",
	"handler":    module + "pkg/model/handler",
	"health":     module + "pkg/health",
	"kopf":       module + "pkg/kopf",
	"kopftest":   module + "pkg/kopftest",
	"lifecycles": module + "pkg/lifecycles",
	"login":      module + "pkg/login",
	"object":     module + "pkg/model/object",
	"servers":    module + "pkg/webhook/servers",
	"settings":   module + "pkg/settings",
	"storage":    module + "pkg/storage",
	"v1":         module + "examples/typed/api/v1",
}

// module is the import path of the repository's root.
const module = "github.com/kopf-go/kopf/"
