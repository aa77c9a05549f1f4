{{- define "weald.fullname" -}}
{{- if eq .Release.Name .Chart.Name }}{{ .Chart.Name }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "weald.selector" -}}
app.kubernetes.io/name: weald
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weald.labels" -}}
{{ include "weald.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* The configuration as it was given, once it is seen to be one. */ -}}
{{- define "weald.config" -}}
{{- if not .Values.config }}{{ fail "config is empty: give --set-file config=weald.toml" }}{{ end }}
{{- $read := fromToml .Values.config }}
{{- if hasKey $read "Error" }}{{ fail (printf "config is not TOML: %s" (get $read "Error")) }}{{ end }}
{{- .Values.config }}
{{- end }}

{{- /* The name that its series have. */ -}}
{{- define "weald.stream" -}}
{{- dig "stream" "name" "weald" (fromToml .Values.config) }}
{{- end }}

{{- /* How many processes write it. */ -}}
{{- define "weald.writers" -}}
{{- $shards := dig "stream" "shards" 1 (fromToml .Values.config) | int }}
{{- if gt (int .Values.writer.replicas) $shards }}
{{- fail (printf "writer.replicas is %v, and config has stream.shards = %d: others would write nothing" .Values.writer.replicas $shards) }}
{{- end }}
{{- .Values.writer.replicas }}
{{- end }}

{{- define "weald.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "weald.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "weald.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "weald.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{- include "weald.podSecurity" . | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
volumes:
  - name: config
    configMap: { name: {{ include "weald.fullname" . }} }
  - name: kernels
    emptyDir: {}
  - name: tmp
    emptyDir: {}
{{- with .Values.tlsSecret }}
  - name: tls
    secret: { secretName: {{ . }}, defaultMode: 288 }
{{- end }}
{{- end }}

{{- /* The image's compiled kernels, where those of another processor can be added. */ -}}
{{- define "weald.kernels" -}}
- name: kernels
  {{- include "weald.image" . | nindent 2 }}
  command: ["cp", "-R", "/var/cache/weald/.", "/kernels/"]
  securityContext: {{- include "weald.containerSecurity" . | nindent 4 }}
  volumeMounts:
    - { name: kernels, mountPath: /kernels }
{{- end }}

{{- define "weald.container" -}}
{{- include "weald.image" . }}
securityContext: {{- include "weald.containerSecurity" . | nindent 2 }}
{{- with .Values.existingSecret }}
envFrom:
  - secretRef: { name: {{ . }} }
{{- end }}
volumeMounts:
  - { name: config, mountPath: /etc/weald/weald.toml, subPath: weald.toml, readOnly: true }
  - { name: kernels, mountPath: /var/cache/weald }
  - { name: tmp, mountPath: /tmp }
{{- if .Values.tlsSecret }}
  - { name: tls, mountPath: /etc/weald/tls, readOnly: true }
{{- end }}
{{- end }}

{{- define "weald.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
