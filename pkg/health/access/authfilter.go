package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// reviewTimeout limits the reviews of one request.
const reviewTimeout = 10 * time.Second

// Filter authenticates and authorizes clients. It is safe for concurrent use.
type Filter struct {
	tokens   authentication.TokenReviewInterface
	accesses authorization.SubjectAccessReviewInterface
	cache    decisionCache
}

// New returns a filter. Its clients have a separate rate limit, so that a flood of
// requests to the endpoint does not slow down the operator.
func New(config *rest.Config, httpClient *http.Client) (*Filter, error) {
	authenticator, err := authentication.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot create the client for token reviews: %w", err)
	}
	authorizer, err := authorization.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot create the client for access reviews: %w", err)
	}
	return &Filter{tokens: authenticator.TokenReviews(), accesses: authorizer.SubjectAccessReviews()}, nil
}

// Wrap returns a handler that rejects unauthorized requests and passes the others on.
func (f *Filter) Wrap(log logr.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(into http.ResponseWriter, request *http.Request) {
		scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			token = ""
		}
		switch status, err := f.Authorize(request.Context(), strings.TrimSpace(token), request.Method, request.URL.Path); {
		case err != nil:
			log.Error(err, "A request cannot be authorized.", "path", request.URL.Path)
			http.Error(into, "the request cannot be authorized now", status)
		case status == http.StatusUnauthorized:
			into.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(into, "a bearer token of the cluster is required", status)
		case status == http.StatusForbidden:
			http.Error(into, "the cluster does not permit this request", status)
		default:
			next.ServeHTTP(into, request)
		}
	})
}

// Authorize returns the status to respond with to the client with a token: OK if it is permitted to send a request with
// the method to the path.
func (f *Filter) Authorize(ctx context.Context, token, method, path string) (status int, err error) {
	if token == "" {
		return http.StatusUnauthorized, nil
	}
	key := cacheKey(sha256.Sum256([]byte(method + "\x00" + path + "\x00" + token)))
	if status, known := f.cache.get(key); known {
		return status, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	status, err = f.review(ctx, token, method, path)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	f.cache.put(key, status)
	return status, nil
}

// review asks the cluster whether the request is permitted.
func (f *Filter) review(ctx context.Context, token, method, path string) (status int, err error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	user, err := f.tokens.Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("the token cannot be reviewed; grant the operator the verb create of tokenreviews.authentication.k8s.io: %w", err)
	case !user.Status.Authenticated:
		return http.StatusUnauthorized, nil
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Status.User.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	access, err := f.accesses.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Status.User.Username, UID: user.Status.User.UID, Groups: user.Status.User.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{
			Path: path, Verb: strings.ToLower(method),
		},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("the access cannot be reviewed; grant the operator the verb create of subjectaccessreviews.authorization.k8s.io: %w", err)
	case !access.Status.Allowed || access.Status.Denied:
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
