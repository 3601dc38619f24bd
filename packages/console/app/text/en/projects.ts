export const projects = {}
