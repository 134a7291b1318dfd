for (const figure of document.querySelectorAll("figure[data-kind]")) mount(figure);
