/** Called with the reason when the store stops working, and with undefined when it works again. */
export type TroubleListener = (trouble: string | undefined) => void
