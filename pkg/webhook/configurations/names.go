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

// maxName is how long names may be in Kubernetes, with room for a number.
const maxName = validation.DNS1123SubdomainMaxLength - 4

// name is that of a webhook: it is for people, and for the answers of the API
// server. Kubernetes wants three parts with lower-case letters, digits, dashes.
func name(id, suffix string) string {
	text := strings.ToLower(strings.NewReplacer("/", ".", "_", "-").Replace(id))
	text = regexp.MustCompile(`[^a-z0-9.-]`).ReplaceAllStringFunc(text, func(char string) string { return hex.EncodeToString([]byte(char)) })
	var parts []string
	for part := range strings.SplitSeq(text, ".") {
		if part = strings.Trim(part, "-"); part != "" {
			parts = append(parts, part)
		}
	}
	text = strings.Join(parts, ".")
	text = text[:max(0, min(len(text), maxName-len(suffix)-1))]
	return strings.TrimRight(text, ".-") + "." + suffix
}

// suffix is the end of the names of all webhooks of one operator.
func suffix(managed string) string {
	if !strings.Contains(managed, ".") {
		return managed + ".kopf.dev"
	}
	return managed
}

// distinct makes a name different from those that were taken before.
func distinct(name string, taken map[string]bool) string {
	candidate := name
	for n := 2; taken[candidate]; n++ {
		candidate = fmt.Sprintf("%s-%d.%s", before(name), n, name[len(before(name))+1:])
	}
	taken[candidate] = true
	return candidate
}

// before is the first part of a name.
func before(name string) string {
	part, _, _ := strings.Cut(name, ".")
	return part
}

// escaped is the path of a handler in URLs.
func escaped(id string) string {
	var segments []string
	for segment := range strings.SplitSeq(id, "/") {
		segments = append(segments, url.PathEscape(segment))
	}
	return strings.Join(segments, "/")
}

// plain is the path of a handler in services, of which Kubernetes wants that every
// segment is a lower-case name. What is none becomes similar to one, with a
// checksum instead of what it lost: "checkIt" becomes "checkit-1b2c3d4e".
func plain(id string) string {
	var segments []string
	for segment := range strings.SplitSeq(id, "/") {
		if len(validation.IsDNS1123Subdomain(segment)) > 0 {
			segment = similar(segment)
		}
		segments = append(segments, segment)
	}
	return strings.Join(segments, "/")
}

const maxSegment = 63

func similar(segment string) string {
	sum := fnv.New32a()
	sum.Write([]byte(segment))
	text := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(segment), "-")
	text = strings.Trim(text[:min(len(text), maxSegment)], "-")
	return strings.TrimLeft(fmt.Sprintf("%s-%08x", text, sum.Sum32()), "-")
}
