import type { Configuration } from '../../src/operate/settings/configuration.ts'

export type OperationUpstream = NonNullable<
  NonNullable<Configuration['actions'][number]['methods']['GET']>['upstream']
>
export type ForwardingBackend = Extract<Configuration['backends'][string], { kind: 'http' }>

/**
 * config/upstream.yaml with further actions of the area fund-data, all like the GET of `fund-list`, with these `upstream`
 * sections; and with its backend changed.
 */
export const withForwardedActions =
  (
    upstreams: Readonly<Record<string, OperationUpstream>>,
    change = (backend: ForwardingBackend): ForwardingBackend => backend,
  ) =>
  (loaded: Configuration): Configuration => {
    const list = loaded.actions.find(({ action }) => action === 'fund-list')
    const { funds } = loaded.backends
    if (list?.methods.GET === undefined || funds?.kind !== 'http')
      throw new TypeError('config/upstream.yaml has an http backend "funds" and a GET of fund-list')
    const { GET } = list.methods
    const actions = Object.entries(upstreams).map(([action, upstream]) => ({
      ...list,
      action,
      methods: { GET: { ...GET, upstream } },
    }))
    return {
      ...loaded,
      backends: { ...loaded.backends, funds: change(funds) },
      actions: [...loaded.actions, ...actions],
    }
  }
