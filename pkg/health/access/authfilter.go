package access

import (
	"context"
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

// reviewTimeout limits the questions about one request.
const reviewTimeout = 10 * time.Second

// Filter decides who may read. It is safe for concurrent use.
type Filter struct {
	tokens   authentication.TokenReviewInterface
	accesses authorization.SubjectAccessReviewInterface
	cache    decisionCache
}

// New makes a guard. Its questions have a rate limit of their own: whoever keeps it
// busy does not keep the operator from its work.
func New(config *rest.Config, httpClient *http.Client) (*Filter, error) {
	who, err := authentication.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("nobody can be authenticated: %w", err)
	}
	what, err := authorization.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("nobody can be authorized: %w", err)
	}
	return &Filter{tokens: who.TokenReviews(), accesses: what.SubjectAccessReviews()}, nil
}

// Wrap answers those who are not permitted, and lets the others through.
func (f *Filter) Wrap(log logr.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(into http.ResponseWriter, request *http.Request) {
		switch status, err := f.authorize(request); {
		case err != nil:
			log.Error(err, "It is not known who may read this.", "path", request.URL.Path)
			http.Error(into, "the cluster does not tell who may read this", status)
		case status == http.StatusUnauthorized:
			into.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(into, "a token of the cluster is needed", status)
		case status == http.StatusForbidden:
			http.Error(into, "the cluster does not permit to read this", status)
		default:
			next.ServeHTTP(into, request)
		}
	})
}

// authorize is the status to answer with: OK for whom it is permitted.
func (f *Filter) authorize(request *http.Request) (status int, err error) {
	token, ok := bearerToken(request)
	if !ok {
		return http.StatusUnauthorized, nil
	}
	key := cacheKeyOf(token, request)
	if status, known := f.cache.get(key); known {
		return status, nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
	defer cancel()
	status, err = f.review(ctx, token, request)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	f.cache.put(key, status)
	return status, nil
}

// bearerToken is the token of a request.
func bearerToken(request *http.Request) (token string, ok bool) {
	scheme, token, found := strings.Cut(request.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, found && strings.EqualFold(scheme, "Bearer") && token != ""
}

// review asks the cluster.
func (f *Filter) review(ctx context.Context, token string, request *http.Request) (status int, err error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	who, err := f.tokens.Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("the token cannot be reviewed; permit to create tokenreviews.authentication.k8s.io: %w", err)
	case !who.Status.Authenticated:
		return http.StatusUnauthorized, nil
	}
	what, err := f.accesses.Create(ctx, accessReview(who.Status.User, request), metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("the access cannot be reviewed; permit to create subjectaccessreviews.authorization.k8s.io: %w", err)
	case !what.Status.Allowed || what.Status.Denied:
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

// accessReview is what a user wants to do.
func accessReview(user authenticationv1.UserInfo, request *http.Request) *authorizationv1.SubjectAccessReview {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{
			Path: request.URL.Path, Verb: strings.ToLower(request.Method),
		},
	}}
}
