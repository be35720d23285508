/** A part of the account page: what it shows, and the forms that it answers. */
import type { Answer } from '../../base/contracts/calls/exchange.ts'
import type { AccountDone, AccountSection } from '../pages/account.ts'
import type { FormProblem, OwnForm } from '../pages/layout.ts'
import type { BrowserContext, Login } from '../steps/browser-context.ts'
import type { Arrived, StepDependencies } from '../steps/endpoint.ts'

export interface Shown {
  readonly login: Login
  readonly form: OwnForm
  /** The mistakes in the form of this part, if that is the form that was just sent. */
  readonly problems: readonly FormProblem[]
}

export interface Sent {
  readonly context: Arrived
  readonly login: Login
  readonly browser: BrowserContext
  readonly params: ReadonlyMap<string, string>
}

/** `done`: the page comes again and says so. `problems`: nothing was changed. */
type Acted =
  | { readonly done: AccountDone; readonly headers?: Answer['headers'] }
  | { readonly problems: readonly FormProblem[] }
  | { readonly answer: Answer }

export interface AccountPart {
  /** The fields by one of which its forms are known. */
  readonly fields: readonly string[]
  readonly show: (shown: Shown, dependencies: StepDependencies) => AccountSection | Promise<AccountSection>
  readonly act?: (sent: Sent, dependencies: StepDependencies) => Promise<Acted>
}
