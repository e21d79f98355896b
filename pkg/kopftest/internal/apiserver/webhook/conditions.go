package webhook

import (
	"context"
	"encoding/json"
	"sync"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
)

// newCompiler returns the compiler of match conditions, which takes a moment to make.
var newCompiler = sync.OnceValue(func() cel.ConditionCompiler {
	return cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

// conditions are the compiled match conditions of the webhooks in one server.
type conditions struct{ compiled sync.Map }

// matcherOf returns the compiled conditions of a webhook.
func (c *conditions) matcherOf(hook registrationv1.ValidatingWebhook) (matchconditions.Matcher, error) {
	key, err := json.Marshal([]any{hook.Name, hook.FailurePolicy, hook.MatchConditions})
	if err != nil {
		return nil, err
	}
	if known, ok := c.compiled.Load(string(key)); ok {
		return known.(matchconditions.Matcher), nil //nolint:errcheck // nothing else is stored
	}
	expressions := make([]cel.ExpressionAccessor, len(hook.MatchConditions))
	for i, one := range hook.MatchConditions {
		expressions[i] = new(matchconditions.MatchCondition(one))
	}
	compiled := newCompiler().CompileCondition(expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	made := matchconditions.NewMatcher(compiled, hook.FailurePolicy, "webhook", "validating", hook.Name)
	c.compiled.Store(string(key), made)
	return made, nil
}

// match reports whether the match conditions of a webhook hold for a request.
func (c *conditions) match(ctx context.Context, hook registrationv1.ValidatingWebhook, r Review) (bool, error) {
	if len(hook.MatchConditions) == 0 {
		return true, nil
	}
	matcher, err := c.matcherOf(hook)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	// The request as the libraries of the API server have it.
	attributes := admission.NewAttributesRecord(objectOrNil(r.Object), objectOrNil(r.Old), r.Resource.GroupVersionKind(), r.Key.Namespace, r.Key.Name,
		r.Resource.GroupVersionResource, r.Subresource, admission.Operation(r.Operation), nil, r.DryRun,
		&user.DefaultInfo{Name: userName, Groups: userGroups()})
	about := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: r.Resource.GroupVersionKind()}
	about.VersionedObject.Set(objectOrNil(r.Object))
	about.VersionedOldObject.Set(objectOrNil(r.Old))
	result := matcher.Match(ctx, about, nil, everything{})
	if result.Error != nil {
		return false, apierrors.NewForbidden(r.Resource.GroupResource(), r.Key.Name, result.Error)
	}
	return result.Matches, nil
}

// objectOrNil makes a nil of the interface type.
func objectOrNil(object *unstructured.Unstructured) runtime.Object {
	if object == nil {
		return nil
	}
	return object
}

// everything allows everything, as this server does.
type everything struct{}

// Authorize allows the request.
func (everything) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}
