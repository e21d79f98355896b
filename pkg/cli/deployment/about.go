package deployment

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// aboutFile is the file in the folder of a bundle with what people read about an operator.
const aboutFile = "about.yaml"

// about is what a person says about an operator.
type about struct {
	entry

	// IconFile is an image next to the file.
	IconFile string `json:"iconFile,omitempty"`
	// Annotations are further annotations of the ClusterServiceVersion.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Channels are those of the catalog in which the version is published.
	Channels       []string `json:"channels,omitempty"`
	DefaultChannel string   `json:"defaultChannel,omitempty"`
	// RelatedImages are images that the operator runs.
	RelatedImages []image `json:"relatedImages,omitempty"`
}

// entry is what a catalog shows about an operator, in the fields of a ClusterServiceVersion.
type entry struct {
	DisplayName string       `json:"displayName"`
	Description string       `json:"description,omitempty"`
	Keywords    []string     `json:"keywords,omitempty"`
	Provider    *link        `json:"provider,omitempty"`
	Maintainers []maintainer `json:"maintainers,omitempty"`
	Links       []link       `json:"links,omitempty"`
	Maturity    string       `json:"maturity,omitempty"`
	Icon        []icon       `json:"icon,omitempty"`
	Replaces    string       `json:"replaces,omitempty"`
	Skips       []string     `json:"skips,omitempty"`
}

type link struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

type maintainer struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
}

type icon struct {
	Data      string `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type image struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// mediaTypes are those of icons, by the ends of their names.
var mediaTypes = map[string]string{".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}

// readAbout reads what a person says about the operator. If there is no such file, it is what the new one says.
func (d *Deployment) readAbout(dir string) (a about, isNew bool, err error) {
	file := filepath.Join(dir, aboutFile)
	text, err := os.ReadFile(file) //nolint:gosec // named by the developer
	if errors.Is(err, fs.ErrNotExist) {
		isNew = true
		starter, failed := d.fromTemplate(aboutFile, aboutFile)
		text, err = []byte(starter.text), failed
	}
	if err != nil {
		return a, isNew, err
	}
	if err := yaml.UnmarshalStrict(text, &a); err != nil {
		return a, isNew, fmt.Errorf("%s: %w", file, err)
	}
	if a.DisplayName == "" {
		a.DisplayName = d.Name
	}
	if len(a.Channels) == 0 {
		a.Channels = []string{"stable"}
	}
	if a.IconFile != "" {
		mediaType, ok := mediaTypes[strings.ToLower(filepath.Ext(a.IconFile))]
		if !ok {
			return a, isNew, fmt.Errorf("%s: the icon %s is neither an SVG, a PNG, a JPEG, nor a GIF", file, a.IconFile)
		}
		data, err := os.ReadFile(filepath.Join(dir, a.IconFile)) //nolint:gosec // named by the developer
		if err != nil {
			return a, isNew, fmt.Errorf("%s: %w", file, err)
		}
		a.Icon = append(a.Icon, icon{Data: base64.StdEncoding.EncodeToString(data), MediaType: mediaType})
	}
	return a, isNew, nil
}
