package configurations

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxNameLength is the maximum length of names in Kubernetes, less room for a number.
const maxNameLength = validation.DNS1123SubdomainMaxLength - 4

// webhookName returns the name of a webhook, which people see in the answers of the API
// server. Kubernetes requires at least three parts with lower-case letters, digits and
// dashes.
func webhookName(id, suffix string) string {
	text := strings.ToLower(strings.NewReplacer("/", ".", "_", "-").Replace(id))
	text = regexp.MustCompile(`[^a-z0-9.-]`).ReplaceAllStringFunc(text, func(char string) string { return hex.EncodeToString([]byte(char)) })
	var parts []string
	for part := range strings.SplitSeq(text, ".") {
		part = strings.Trim(part, "-")
		if part != "" {
			parts = append(parts, part)
		}
	}
	text = strings.Join(parts, ".")
	text = text[:max(0, min(len(text), maxNameLength-len(suffix)-1))]
	return strings.TrimRight(text, ".-") + "." + suffix
}

// nameSuffix returns the suffix of the names of all webhooks of one operator.
func nameSuffix(managed string) string {
	if !strings.Contains(managed, ".") {
		return managed + ".kopf.dev"
	}
	return managed
}

// uniqueName returns a name that was not taken before, and takes it.
func uniqueName(name string, taken map[string]bool) string {
	first, rest, _ := strings.Cut(name, ".")
	candidate := name
	for n := 2; taken[candidate]; n++ {
		candidate = fmt.Sprintf("%s-%d.%s", first, n, rest)
	}
	taken[candidate] = true
	return candidate
}

// urlPath returns the path of a handler in URLs.
func urlPath(id string) string {
	var segments []string
	for segment := range strings.SplitSeq(id, "/") {
		segments = append(segments, url.PathEscape(segment))
	}
	return strings.Join(segments, "/")
}

// servicePath returns the path of a handler in services, where Kubernetes requires every
// segment to be a lower-case name. Other segments are sanitized and get a checksum:
// "checkIt" becomes "checkit-1b2c3d4e".
func servicePath(id string) string {
	var segments []string
	for segment := range strings.SplitSeq(id, "/") {
		if len(validation.IsDNS1123Subdomain(segment)) > 0 {
			segment = sanitizeSegment(segment)
		}
		segments = append(segments, segment)
	}
	return strings.Join(segments, "/")
}

const maxSegmentLength = 63

func sanitizeSegment(segment string) string {
	sum := fnv.New32a()
	sum.Write([]byte(segment))
	text := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(segment), "-")
	text = strings.Trim(text[:min(len(text), maxSegmentLength)], "-")
	return strings.TrimLeft(fmt.Sprintf("%s-%08x", text, sum.Sum32()), "-")
}
