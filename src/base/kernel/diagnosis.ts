/** A finding of `keys doctor` or `check --connect`. */
export interface Diagnosis {
  readonly level: 'fine' | 'warning' | 'error'
  /** A sentence or more. */
  readonly text: string
}

export const fine = (text: string): Diagnosis => ({ level: 'fine', text })
export const warning = (text: string): Diagnosis => ({ level: 'warning', text })
export const failing = (text: string): Diagnosis => ({ level: 'error', text })

const MARK = { fine: '  ok ', warning: 'WARN ', error: 'FAIL ' } as const

/** A line of the command line. */
export const diagnosisLine = ({ level, text }: Diagnosis): string => `${MARK[level]}${text}\n`
