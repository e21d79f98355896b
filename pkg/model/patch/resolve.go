package patch

// Resolve is the smallest merge patch (RFC 7386) that brings an object to the
// wanted state: the values in the order in which they were set, and then the
// transformations. It is nil when the object is in that state already.
//
// Neither the body nor the patch changes; a patch can be resolved as often as
// there are conflicts. The status is part of the result, see SplitStatus.
//
// Errors: a *FieldError for a value that cannot be expressed as JSON, and for a
// field that only the API server writes; a *TransformError for a transformation
// that fails, panics, or leaves something that is not JSON. The patch is not to
// be sent then, not even partially.
func (p *Patch) Resolve(body map[string]any) (map[string]any, error) {
	wanted, err := p.wanted(body, minimal)
	if err != nil {
		return nil, err
	}
	merge := Difference(body, wanted)
	if err := writable(merge); err != nil {
		return nil, err
	}
	return merge, nil
}

// Applied returns the object in the wanted state, for a mutation in an admission
// review; Operations turn it into the response. It differs from Resolve, as Kopf does,
// in one point: where the body has no mapping, Merge does not create one without any
// value in it, not even an empty one that was asked for. The result shares parts with
// the body: read only.
func (p *Patch) Applied(body map[string]any) (map[string]any, error) {
	wanted, err := p.wanted(body, populated)
	if err != nil {
		return nil, err
	}
	if err := writable(Difference(body, wanted)); err != nil {
		return nil, err
	}
	return wanted, nil
}

// wanted is the body after all that was asked for; of what is to be merged, only
// the part that is worth it.
func (p *Patch) wanted(body map[string]any, worth func(body, merge map[string]any) map[string]any) (map[string]any, error) {
	changes, transforms := p.snapshot()
	wanted := body
	for _, c := range changes {
		if c.err != nil {
			return nil, c.err
		}
		wanted = c.applied(wanted, worth)
	}
	return transformed(wanted, transforms)
}
