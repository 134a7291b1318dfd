// What the server answers, as data; where it does not, why, in a sentence.

export const answerOf = async (url, options = {}) => {
  const reply = await fetch(url, { redirect: "manual", ...options });
  if (reply.type === "opaqueredirect") throw new Error("Locust asks for its login again: reload this page.");
  if (!reply.ok) throw new Error(`The server answers with an error (${reply.status}).`);
  return reply.json();
};

const SILENT = "The server does not answer: it may have ended.";

// Ours are sentences; a browser's own are not.
export const reasonOf = (error) => (error.message.endsWith(".") ? error.message : SILENT);
