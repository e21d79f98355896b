package kinds

// immutable are the fields that the API server lets no client change, by their kinds.
var immutable = map[string][]string{
	"CertificateSigningRequest": {"spec"},
	"ClusterRoleBinding":        {"roleRef"},
	"ControllerRevision":        {"data"},
	"CSIDriver":                 {"spec.attachRequired", "spec.volumeLifecycleModes"},
	"CSINode":                   {"spec.drivers.*.nodeID", "spec.drivers.*.topologyKeys"},
	"CSIStorageCapacity":        {"nodeTopology", "storageClassName"},
	"DaemonSet":                 {"spec.selector"},
	"Deployment":                {"spec.selector"},
	"Event.v1.events.k8s.io":    {"regarding", "reason", "note", "type", "eventTime", "action", "related", "reportingController", "reportingInstance"},
	"IPAddress":                 {"spec"},
	"Job":                       {"spec.completions", "spec.selector", "spec.template", "spec.backoffLimitPerIndex", "spec.podFailurePolicy", "spec.successPolicy"},
	"Node":                      {"spec.providerID", "spec.externalID", "spec.podCIDR", "spec.podCIDRs"},
	"PersistentVolume":          volumeSources(),
	"PersistentVolumeClaim":     {"spec"},
	"Pod":                       {"spec"},
	"PodCertificateRequest":     {"spec"},
	"PriorityClass":             {"value", "preemptionPolicy"},
	"ReplicaSet":                {"spec.selector"},
	"ResourceClaim":             {"spec"},
	"ResourceClaimTemplate":     {"spec"},
	"ResourceSlice":             {"spec.pool.name", "spec.nodeName"},
	"RoleBinding":               {"roleRef"},
	"Service":                   {"spec.clusterIP", "spec.clusterIPs"},
	"StatefulSet":               {"spec.selector", "spec.volumeClaimTemplates", "spec.serviceName", "spec.podManagementPolicy"},
	"StorageClass":              {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
	"StorageVersionMigration":   {"spec"},
	"VolumeAttachment":          {"spec"},
	"VolumeAttributesClass":     {"parameters"},
}

// mutable are fields within those that can be changed nevertheless.
var mutable = map[string][]string{
	"Pod": {"spec.containers.*.image", "spec.initContainers.*.image"},
}

// volumeSources returns the fields of a volume that cannot be changed.
func volumeSources() []string {
	paths := []string{"spec.volumeMode", "spec.nodeAffinity"}
	for _, member := range unions["PersistentVolumeSpec"] {
		for field := range member {
			if field != "volumeAttributesClassName" {
				paths = append(paths, "spec."+field)
			}
		}
	}
	return paths
}
