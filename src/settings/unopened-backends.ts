/** Stand-ins for backends, for what reads a configuration and makes no call. */
import type { OpenedBackend } from '../backends/open.ts'
import type { Problems } from '../config/problems.ts'
import type { Catalogue } from '../config/scopes/catalogue.ts'
import { compileActions, type CompiledActions } from '../gateway/compile-actions.ts'
import { Fault } from '../kernel/faults.ts'
import type { Configuration } from './configuration.ts'

/** Stands for a backend that is not open: only its name matters, and no operation of it is a problem. */
export const unopened = (name: string): OpenedBackend => ({
  name,
  format: 'value',
  payload: 'bare',
  answer: () => Promise.reject(new Fault('internal', { detail: `backend ${name} is not open` })),
  upgrade: () => Promise.reject(new Fault('internal', { detail: `backend ${name} is not open` })),
  close: () => Promise.resolve(),
  forOperation: () => unopened(name),
})

/** The actions of a configuration as the gateway compiles them, with no backend open. Their problems go to the report. */
export const compileUnopened = (
  { actions, areas, backends, issuers }: Configuration,
  catalogue: Catalogue,
  problems: Problems,
): CompiledActions =>
  compileActions(
    actions,
    {
      ...{ catalogue, areas, severalIssuers: issuers.length > 1 },
      backends: new Map(Object.keys(backends).map((name) => [name, unopened(name)])),
    },
    problems,
  )
