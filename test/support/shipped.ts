/** The configurations that are shipped, and what they need to start. */
export const SHIPPED: readonly (readonly [file: string, environment: Readonly<Record<string, string>>])[] = [
  ['demo.yaml', {}],
  ['sandbox.yaml', {}],
  ['upstream.yaml', { UPSTREAM_URL: 'http://127.0.0.1:1' }],
  ['sidecar.yaml', { UPSTREAM_URL: 'http://127.0.0.1:1' }],
  ...['map-fields', 'merge-calls', 'sign-requests', 'sqlite', 'wrap-soap'].map(
    (name) => [`examples/${name}.yaml`, { FUNDS_URL: 'http://127.0.0.1:1' }] as const,
  ),
]
