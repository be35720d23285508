/** How records and the log name who has typed a command. */
import { hostname, userInfo } from 'node:os'
import type { Terminal } from '../operator/terminal.ts'

/** The name of the operator for the log. */
export function operatorName({ env }: Terminal): string {
  if (env['SUDO_USER']) return env['SUDO_USER']
  try {
    return userInfo().username
  } catch {
    return 'unknown'
  }
}

/** Who gives an order by what files allow: the user whose rights this process has, by number where it has no name, and the host. */
export function systemOperatorName(): string {
  const user = (): string => {
    try {
      return userInfo().username
    } catch {
      return String(process.geteuid?.() ?? 'unknown')
    }
  }
  return `${user()}@${hostname()}`
}
