package kinds

// generated is the value of a member of a union that has no rule.
const generated = "(generated)"

// only in a member means that it has no fields besides its own.
const only = "(only)"

// first in a member means that its fields have only their first values.
const first = "(first)"

// each returns the members of a union, each of which has one field.
func each(fields ...string) (members []map[string]any) {
	for _, field := range fields {
		members = append(members, map[string]any{field: generated})
	}
	return members
}

// unions are the members of the unions of definitions: the fields that exclude those of other members. A
// member can fix their values.
var unions = map[string][]map[string]any{
	"ConfigMap": {{"immutable": false}, {"immutable": true}},
	"Secret":    {{"immutable": false}, {"immutable": true}},
	"Volume": each("persistentVolumeClaim", "emptyDir", "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "configMap", "csi", "downwardAPI",
		"ephemeral", "fc", "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "hostPath", "image", "iscsi", "nfs", "photonPersistentDisk",
		"portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret", "storageos", "vsphereVolume"),
	"PersistentVolumeSpec": append([]map[string]any{{"csi": generated, "volumeAttributesClassName": generated}}, each("awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "fc", "flexVolume", "flocker", "gcePersistentDisk", "glusterfs", "hostPath",
		"iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume", "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume")...),
	"FCVolumeSource":               {{"wwids": generated}, {"targetWWNs": generated, "lun": edited(int64(1), int64(2))}},
	"FlockerVolumeSource":          each("datasetName", "datasetUUID"),
	"VolumeProjection":             each("clusterTrustBundle", "configMap", "downwardAPI", "podCertificate", "secret", "serviceAccountToken"),
	"ClusterTrustBundleProjection": {{"name": generated, "path": edited("bundle-1", "bundle-3")}, {"signerName": generated, "labelSelector": generated, "path": edited("bundle-2", "bundle-4")}},
	"DownwardAPIVolumeFile":        {{"fieldRef": generated, "path": edited("field-1", "field-2")}, {"resourceFieldRef": generated, "path": edited("resource-1", "resource-2")}},
	"EnvVar":                       each("value", "valueFrom"),
	"EnvVarSource":                 each("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"),
	"EnvFromSource":                each("configMapRef", "secretRef"),
	"LifecycleHandler":             each("exec", "httpGet", "sleep", "tcpSocket"),
	"Probe":                        each("exec", "grpc", "httpGet", "tcpSocket"),
	"VolumeMount":                  each("subPath", "subPathExpr"),
	"AppArmorProfile":              {{"type": "Localhost", "localhostProfile": edited("a", "b")}},
	"SeccompProfile":               {{"type": "Localhost", "localhostProfile": edited("a", "b")}},
	"PodResourceClaim":             each("resourceClaimName", "resourceClaimTemplateName"),
	"Container":                    {{first: true, "ports": list{}}, {only: true, "name": "value-1", "image": "probes", "livenessProbe": generated, "startupProbe": generated, "lifecycle": generated}, {only: true, "name": "value-1", "image": "ports", "ports": generated}},
	"Mutation": {
		{"patchType": "ApplyConfiguration", "applyConfiguration": edited(object{"expression": "Object{}"}, object{"expression": "Object{metadata: Object.metadata{}}"})},
		{"patchType": "JSONPatch", "jsonPatch": edited(object{"expression": `[JSONPatch{op: "test", path: "/spec", value: "a"}]`}, object{"expression": `[JSONPatch{op: "test", path: "/spec", value: "b"}]`})},
	},
	"ParamRef":                  each("name", "selector"),
	"WebhookClientConfig":       each("service", "url"),
	"CustomResourceConversion":  {{"strategy": "Webhook", "webhook": generated}, {"strategy": "None"}},
	"APIServiceSpec":            {{"service": generated, "caBundle": generated, "insecureSkipTLSVerify": false}, {"service": generated, "insecureSkipTLSVerify": true}},
	"DaemonSetUpdateStrategy":   {{"type": "RollingUpdate", "rollingUpdate": edited(object{"maxSurge": int64(0), "maxUnavailable": "10%"}, object{"maxSurge": int64(0), "maxUnavailable": int64(2)})}, {"type": "OnDelete"}},
	"DeploymentStrategy":        {{"type": "RollingUpdate", "rollingUpdate": edited(object{"maxSurge": "10%", "maxUnavailable": int64(1)}, object{"maxSurge": int64(2), "maxUnavailable": "20%"})}, {"type": "Recreate"}},
	"StatefulSetUpdateStrategy": {{"type": "RollingUpdate", "rollingUpdate": generated}, {"type": "OnDelete"}},
	"MetricSpec":                {{"type": "Resource", "resource": generated}, {"type": "ContainerResource", "containerResource": generated}, {"type": "External", "external": generated}, {"type": "Object", "object": generated}, {"type": "Pods", "pods": generated}},
	"PodFailurePolicyRule":      each("onExitCodes", "onPodConditions"),
	"ServiceSpec": {
		{"type": "LoadBalancer", "clusterIP": edited("10.0.0.100", "10.0.0.101"), "clusterIPs": edited(list{"10.0.0.100"}, list{"10.0.0.101"}), "healthCheckNodePort": int64(30100), "externalTrafficPolicy": "Local", "allocateLoadBalancerNodePorts": generated, "loadBalancerClass": generated, "loadBalancerIP": generated, "loadBalancerSourceRanges": generated, "externalIPs": generated},
		{only: true, "type": "ExternalName", "externalName": edited("a.example.com", "b.example.com")},
		{only: true, "type": "ClusterIP", "clusterIP": "None", "selector": generated, "publishNotReadyAddresses": generated},
	},
	"flowcontrol.v1.Subject":          {{"kind": "Group", "group": generated}, {"kind": "ServiceAccount", "serviceAccount": generated}, {"kind": "User", "user": generated}},
	"rbac.v1.Subject":                 {{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "ServiceAccount", "namespace": generated, "apiGroup": ""}, {"kind": "User", "apiGroup": "rbac.authorization.k8s.io"}},
	"PriorityLevelConfigurationSpec":  {{"type": "Limited", "limited": generated}},
	"LimitResponse":                   {{"type": "Queue", "queuing": generated}, {"type": "Reject"}},
	"IngressBackend":                  each("service", "resource"),
	"ServiceBackendPort":              each("name", "number"),
	"IngressClassParametersReference": {{"scope": "Namespace", "namespace": generated}, {"scope": "Cluster"}},
	"NetworkPolicyPeer":               {{"ipBlock": generated}, {"podSelector": generated, "namespaceSelector": generated}},
	"PodDisruptionBudgetSpec":         each("maxUnavailable", "minAvailable"),
	"PolicyRule":                      {{"apiGroups": generated, "resources": generated, "resourceNames": generated}, {"nonResourceURLs": generated}},
	"DeviceConstraint":                each("matchAttribute", "distinctAttribute"),
	"DeviceRequest":                   {{"name": "value-1", "exactly": generated}, {"name": "other", "firstAvailable": generated}},
	"ExactDeviceRequest":              {{"allocationMode": "ExactCount", "count": generated}},
	"DeviceSubRequest":                {{"allocationMode": "ExactCount", "count": generated}},
	"DeviceAttribute":                 each("bool", "int", "string", "version"),
	"CapacityRequestPolicy":           {{"validRange": edited(nil, object{"min": "1", "max": "4", "step": "1"})}, {"validValues": edited(nil, list{"1Gi"})}},
	"ResourceSliceSpec": {
		{"nodeName": generated, "devices": generated},
		{"nodeSelector": generated, "sharedCounters": generated},
		{"allNodes": true, "devices": list{object{"name": "a"}}},
		{"perDeviceNodeSelection": true, "devices": list{object{"name": "a", "nodeName": "a"}, object{"name": "b", "allNodes": true}, object{"name": "c", "nodeSelector": object{"nodeSelectorTerms": list{object{"matchExpressions": list{object{"key": "a", "operator": "Exists"}}}}}}}},
	},
	"VolumeAttachmentSource": each("persistentVolumeName", "inlineVolumeSpec"),
	"PodSpec": {
		{},
		{only: true, "containers": list{object{"name": "value-1", "image": "web", "lifecycle": object{"stopSignal": "SIGTERM"}}}, "os": object{"name": "linux"}, "hostnameOverride": edited("a", "b"), "restartPolicy": generated},
		{only: true, "containers": list{object{"name": "value-1", "image": "web"}}, "hostNetwork": edited(true, false), "hostPID": edited(true, false), "hostUsers": true, "nodeName": "a", "restartPolicy": generated},
		{only: true, "containers": list{object{"name": "value-1", "image": "web"}}, "hostUsers": edited(false, true), "restartPolicy": generated},
	},
	"Role:PolicyRule": {{"apiGroups": generated, "resources": generated, "resourceNames": generated}},
}
