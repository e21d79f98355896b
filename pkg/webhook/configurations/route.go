package configurations

import "net/http"

// Route returns a handler that restores the ids of the hooks in the paths of requests:
// a sanitized path of a service becomes the id again.
func (m *Manager) Route(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id, found := m.idAt(r.URL.Path); found {
			r = r.Clone(r.Context())
			r.URL.Path = "/" + id
			r.URL.RawPath = ""
		}
		handler.ServeHTTP(w, r)
	})
}

// idAt returns the id of the hook with a sanitized path, and whether there is one.
func (m *Manager) idAt(path string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, found := m.idsByPath[path]
	return id, found
}

// idsByServicePath returns the ids of the hooks whose paths in services are sanitized.
func idsByServicePath(hooks []Hook) map[string]string {
	ids := map[string]string{}
	for _, hook := range hooks {
		if path := servicePath(hook.ID); path != hook.ID {
			ids["/"+path] = hook.ID
		}
	}
	return ids
}
