package webhook

import (
	"strings"

	"github.com/kopf-go/kopf/internal/handler"
	"github.com/kopf-go/kopf/internal/registry"
)

// handlersByPath returns the handlers that are called at each path.
func handlersByPath(handlers registry.Handlers) map[string]registry.Handlers {
	paths := map[string]registry.Handlers{
		"":                    handlers,
		handler.AllValidating: ofKind(handlers, handler.OnValidate),
		handler.AllMutating:   ofKind(handlers, handler.OnMutate),
	}
	for _, d := range handlers {
		paths[d.ID] = append(paths[d.ID], d)
	}
	return paths
}

func ofKind(handlers registry.Handlers, kind handler.Kind) registry.Handlers {
	return handlers.Where(func(d *handler.Declaration) bool { return d.Kind == kind })
}

// handlersAt returns the handlers at the path of a URL, and whether the path exists.
func (w *webhook) handlersAt(path string) (registry.Handlers, bool) {
	handlers, found := w.paths[strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")]
	return handlers, found
}
