import type { Answer, Exchange } from '../contracts/exchange.ts'
import { prefersPage } from '../http/accept.ts'
import { Fault } from '../kernel/faults.ts'
import type { StepDependencies } from './endpoint.ts'
import { pageAnswer } from './pages/layout.ts'
import { notFoundPage } from './pages/notices.ts'

const API = 'api'
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/**
 * C2.3: people who mistype an address, or open `/`, get a page. It has nothing of the address in it.
 * Undefined where none is due: under `/api`, and for who would rather have an envelope.
 */
export function answerUnknownPath(exchange: Exchange, dependencies: StepDependencies): Answer | undefined {
  const { head, refusal, target } = exchange
  if (target instanceof Fault || target.segments[0] === API || refusal !== undefined) return undefined
  if (!METHODS.has(head.method) || !prefersPage(head.headers.accept)) return undefined
  const { developers, theme } = dependencies
  const page = notFoundPage({
    top: target.path === '/' || target.path === theme.at('') || target.path === theme.at('/'),
    name: theme.name,
    applications: theme.at('/connect/applications'),
    developers: developers && theme.at('/developers'),
  })
  return pageAnswer(theme, page, { ...dependencies.transport, Vary: 'Accept' })
}
