{{- define "weald-fit.selector" -}}
app.kubernetes.io/name: weald-fit
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weald-fit.labels" -}}
{{ include "weald-fit.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "weald-fit.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{- /* The pod of a node: root, name of its container, where it goes, and what its health is. */ -}}
{{- define "weald-fit.pod" -}}
{{- $root := .root -}}
metadata:
  labels: {{- include "weald-fit.labels" $root | nindent 4 }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: { type: RuntimeDefault }
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with .node.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .node.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .node.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  initContainers:
    # Kernels of another processor can be added to the image's.
    - name: kernels
      {{- include "weald-fit.image" $root | nindent 6 }}
      command: ["cp", "-R", "/var/cache/weald/.", "/kernels/"]
      volumeMounts:
        - { name: kernels, mountPath: /kernels }
  containers:
    - name: {{ .name }}
      {{- include "weald-fit.image" $root | nindent 6 }}
      env:
        - { name: RAY_USAGE_STATS_ENABLED, value: "0" }
        # Of its own accord the head would ask for a token that nobody gave the others.
        - { name: RAY_AUTH_MODE, value: disabled }
      {{- if .ports }}
      ports:
        - { name: gcs, containerPort: 6379 }
        - { name: dashboard, containerPort: 8265 }
        - { name: client, containerPort: 10001 }
      {{- end }}
      # Those that the operator would give run a program that the image does not have.
      readinessProbe:
        httpGet: { path: {{ .health.path }}, port: {{ .health.port }} }
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 10
      livenessProbe:
        httpGet: { path: {{ .health.path }}, port: {{ .health.port }} }
        initialDelaySeconds: 30
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 120
      volumeMounts:
        - { name: kernels, mountPath: /var/cache/weald }
        - { name: tmp, mountPath: /tmp }
        - { name: home, mountPath: /var/lib/weald }
        - { name: data, mountPath: /data, readOnly: true }
        - { name: work, mountPath: /fits }
      resources: {{- toYaml .node.resources | nindent 8 }}
  volumes:
    - name: kernels
      emptyDir: {}
    - name: tmp
      emptyDir: {}
    - name: home
      emptyDir: {}
    - name: data
      persistentVolumeClaim: { claimName: {{ $root.Values.data.claim }}, readOnly: true }
    - name: work
      persistentVolumeClaim: { claimName: {{ $root.Values.work.claim }} }
{{- end }}
