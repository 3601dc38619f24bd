/** A number of something, as English writes it. */
export const plural = (count: string, one: string): string => count === "1" ? `1 ${one}` : `${count} ${one}s`
