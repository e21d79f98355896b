package discovery

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/kopf-go/kopf/pkg/kopftest/internal/apiserver/resource"
)

// The verbs of resources and of their subresources.
var (
	verbs       = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	endingVerbs = []string{"delete", "deletecollection", "get", "list", "watch"} // of a definition that is deleted; patches work
	customVerbs = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	subverbs    = []string{"get", "patch", "update"}
)

// Version returns the version of the server.
func Version() *apiversion.Info {
	return &apiversion.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0", Compiler: "gc", Platform: "linux/amd64"}
}

// Serve answers a request for a document of discovery. The parts are those of its path.
func Serve(w http.ResponseWriter, r *http.Request, parts []string, all []*resource.Resource) error {
	isAggregated := strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList")
	isCore := parts[0] == "api"
	switch {
	case len(parts) == 1 && isAggregated:
		data, err := aggregated(all, isCore)
		return sendData(w, aggregatedType, data, err)
	case len(parts) == 1 && isCore:
		return send(w, plainType, &metav1.APIVersions{TypeMeta: typeMeta("APIVersions"), Versions: []string{"v1"}})
	case len(parts) == 1:
		return send(w, plainType, groupList(all))
	case !isCore && len(parts) == 2:
		return sendFound(w, groupOf(parts[1], all))
	case isCore:
		return sendFound(w, resourceList(schema.GroupVersion{Version: parts[1]}, all))
	default:
		return sendFound(w, resourceList(schema.GroupVersion{Group: parts[1], Version: parts[2]}, all))
	}
}

const (
	plainType      = "application/json"
	aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

func send(w http.ResponseWriter, media string, document any) error {
	data, err := json.Marshal(document)
	return sendData(w, media, data, err)
}

func sendData(w http.ResponseWriter, media string, data []byte, err error) error {
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	w.Header().Set("Content-Type", media)
	_, err = w.Write(data)
	return err
}

// sendFound sends a document, or the answer that there is none.
func sendFound[T any](w http.ResponseWriter, document *T) error {
	if document == nil {
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, true)
	}
	return send(w, plainType, document)
}

func typeMeta(kind string) metav1.TypeMeta { return metav1.TypeMeta{Kind: kind, APIVersion: "v1"} }

// group is an API group with its versions, newest first.
type group struct {
	name     string
	versions []string
}

// groups returns the groups of the resources, in alphabetical order.
func groups(all []*resource.Resource) []group {
	versions := map[string][]string{}
	for _, one := range all {
		if !slices.Contains(versions[one.Group], one.Version) {
			versions[one.Group] = append(versions[one.Group], one.Version)
		}
	}
	var found []group
	for name, served := range versions {
		slices.SortFunc(served, func(a, b string) int { return apiversion.CompareKubeAwareVersionStrings(b, a) })
		found = append(found, group{name, served})
	}
	slices.SortFunc(found, func(a, b group) int { return strings.Compare(a.name, b.name) })
	return found
}

func groupList(all []*resource.Resource) *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: typeMeta("APIGroupList")}
	for _, one := range groups(all) {
		if one.name != "" {
			made := one.document()
			made.TypeMeta = metav1.TypeMeta{}
			list.Groups = append(list.Groups, made)
		}
	}
	return list
}

func groupOf(name string, all []*resource.Resource) *metav1.APIGroup {
	for _, one := range groups(all) {
		if one.name == name {
			return new(one.document())
		}
	}
	return nil
}

func (g group) document() metav1.APIGroup {
	made := metav1.APIGroup{TypeMeta: typeMeta("APIGroup"), Name: g.name}
	for _, version := range g.versions {
		made.Versions = append(made.Versions, metav1.GroupVersionForDiscovery{GroupVersion: g.name + "/" + version, Version: version})
	}
	made.PreferredVersion = made.Versions[0]
	return made
}

// resourceList returns the resources of one version, or nil if it is not served.
func resourceList(wanted schema.GroupVersion, all []*resource.Resource) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: typeMeta("APIResourceList"), GroupVersion: wanted.String()}
	for _, one := range all {
		if one.GroupVersion() != wanted {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: one.Resource, SingularName: one.Singular, Namespaced: one.Namespaced, Kind: one.Kind,
			Verbs: verbsOf(one), ShortNames: one.ShortNames, Categories: one.Categories,
		})
		for _, sub := range one.Subresources {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: one.Resource + "/" + sub, Namespaced: one.Namespaced, Kind: one.Kind, Verbs: subverbsOf(sub),
			})
		}
	}
	if list.APIResources == nil {
		return nil
	}
	return list
}

// verbsOf returns the verbs of a resource, in the order of the real server.
func verbsOf(one *resource.Resource) []string {
	switch {
	case one.Rules == nil: // a review: there are no objects
		return []string{"create"}
	case one.Group == "" && one.Resource == "namespaces": // cannot be deleted together
		return slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return verb == "deletecollection" })
	case one.Terminating:
		return endingVerbs
	case one.IsCustom():
		return customVerbs
	default:
		return verbs
	}
}

// subverbsOf returns the verbs of a subresource.
func subverbsOf(sub string) []string {
	if sub == "finalize" {
		return []string{"update"}
	}
	return subverbs
}
