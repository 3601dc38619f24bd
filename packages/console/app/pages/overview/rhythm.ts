/** Seconds between two looks at how the project is. */
export const rhythm = 10
