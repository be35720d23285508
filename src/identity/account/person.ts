import { personSection } from '../pages/account.ts'
import type { AccountPart } from './part.ts'

/** Who is signed in, as applications may be told. */
export const person: AccountPart = {
  fields: [],
  show: ({ login: { user } }) => personSection({ ...user.claims, username: user.username }),
}
