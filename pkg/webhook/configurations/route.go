package configurations

import "net/http"

// Route lets requests reach a handler by the id of the hook: what Kubernetes does
// not accept in the path of a service is put back.
func (m *Manager) Route(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id, found := m.idAt(r.URL.Path); found {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = "/"+id, ""
		}
		handler.ServeHTTP(w, r)
	})
}

// idAt is the hook with the path; false if it is reached by its id anyway.
func (m *Manager) idAt(path string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, found := m.idsByPath[path]
	return id, found
}

// idsByServicePath are the ids by the paths that are not the ids themselves.
func idsByServicePath(hooks []Hook) map[string]string {
	ids := map[string]string{}
	for _, hook := range hooks {
		if path := servicePath(hook.ID); path != hook.ID {
			ids["/"+path] = hook.ID
		}
	}
	return ids
}
