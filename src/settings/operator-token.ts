/** What a token of a named operator consists of. */

/** The roles of operators (admin/operators.ts says what each may do). */
export const ROLES = ['view', 'operate', 'administer', 'audit'] as const

/** The name of an operator, and how it is described. */
export const OPERATOR_NAME = {
  pattern: '^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$',
  expected: 'a name of at most 64 letters, digits, ".", "_", "@" and "-"',
} as const
