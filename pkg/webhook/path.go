package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-go/kopf/pkg/kopf/handler"
	"github.com/kopf-go/kopf/pkg/kopf/registry"
)

// Path is where a handler is found below the root of a webhook server, without the
// leading slash, in a form that Kubernetes accepts in the configuration of a service:
// every part in lower case, of letters, digits, dashes and dots. An id that is so
// already is its own path; another one gets a suffix that keeps it apart. Under the
// id itself the handler is found too, which is what URLs are made of.
func Path(id string) string {
	parts := strings.Split(id, "/")
	fits := true
	for i, part := range parts {
		fits = fits && len(validation.IsDNS1123Subdomain(part)) == 0
		parts[i] = strings.Trim(unfit.ReplaceAllString(strings.ToLower(part), "-"), "-.")
		if parts[i] == "" {
			parts[i] = "x"
		}
	}
	if fits {
		return id
	}
	digest := sha256.Sum256([]byte(id))
	return strings.Join(parts, "/") + "-" + hex.EncodeToString(digest[:4])
}

// unfit is what a part of a path cannot have.
var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// pathsOf are the handlers by the paths at which they are called. An id that is
// somebody's own wins over a path that was made.
func pathsOf(handlers registry.Handlers) map[string]registry.Handlers {
	paths := map[string]registry.Handlers{"": handlers}
	for _, d := range handlers {
		paths[d.ID] = append(paths[d.ID], d)
	}
	for _, d := range handlers {
		if paths[Path(d.ID)] == nil {
			paths[Path(d.ID)] = paths[d.ID]
		}
	}
	paths[handler.AllValidating] = ofKind(handlers, handler.OnValidate)
	paths[handler.AllMutating] = ofKind(handlers, handler.OnMutate)
	return paths
}

func ofKind(handlers registry.Handlers, kind handler.Kind) registry.Handlers {
	return handlers.Where(func(d *handler.Declaration) bool { return d.Kind == kind })
}

// at are the handlers at the path of a URL; false: there is nothing.
func (w *webhook) at(path string) (registry.Handlers, bool) {
	handlers, found := w.paths[strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")]
	return handlers, found
}
