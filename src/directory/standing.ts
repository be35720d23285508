import type { Client, User } from '../contracts/people.ts'

/**
 * THE answer to "may this person or client hold tokens now" (C6.3.5): nobody who is locked or disabled. Identity asks
 * it at every door (identity/endpoint.ts), a reload when it compares two directories (holdings.ts).
 */
export const mayHold = ({
  disabled,
  locked = false,
}: Pick<Client, 'disabled'> & Partial<Pick<User, 'locked'>>): boolean => !disabled && !locked
