package patch

// Resolve returns the smallest merge patch (RFC 7386) that brings an object to the
// requested state. It applies the values in the order in which they were set, and then
// the transformations. It returns nil if the object is already in that state.
//
// Resolve modifies neither the body nor the patch, so you can call it again after every
// conflict. The result includes the status; see SplitStatus.
//
// It returns a *FieldError for a value that cannot be expressed as JSON, and for a field
// that only the API server writes. It returns a *TransformError for a transformation that
// fails, panics, or produces a value that is not JSON. After an error, do not send any
// part of the patch.
func (p *Patch) Resolve(body map[string]any) (map[string]any, error) {
	wanted, err := p.wanted(body, minimal)
	if err != nil {
		return nil, err
	}
	merge := Difference(body, wanted)
	if err := checkWritable(merge); err != nil {
		return nil, err
	}
	return merge, nil
}

// Applied returns the object in the requested state, for a mutation in an admission
// review; Operations converts it to the response. As in Kopf, it differs from Resolve in
// one point: Merge creates no mappings without values, not even explicitly requested
// empty ones. The result shares parts with the body, and is read-only.
func (p *Patch) Applied(body map[string]any) (map[string]any, error) {
	wanted, err := p.wanted(body, populated)
	if err != nil {
		return nil, err
	}
	if err := checkWritable(Difference(body, wanted)); err != nil {
		return nil, err
	}
	return wanted, nil
}

// wanted returns the body after all changes. The function worth reduces a merge patch to
// the part that is needed.
func (p *Patch) wanted(body map[string]any, worth func(body, merge map[string]any) map[string]any) (map[string]any, error) {
	changes, transforms := p.snapshot()
	wanted := body
	for _, c := range changes {
		if c.err != nil {
			return nil, c.err
		}
		wanted = c.applied(wanted, worth)
	}
	return applyTransforms(wanted, transforms)
}
